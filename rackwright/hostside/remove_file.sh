# Remove one of Rackwright's files, and its folder when that is empty and was made for it. Parameters: path folder (or nothing).
rm -f "$path" || exit 1
case $path in
  /usr/local/share/ca-certificates/*)
    # It leaves a removed certificate's own links, by name and by hash, unless another certificate came or went.
    pem=${path##*/}
    find /etc/ssl/certs -maxdepth 1 -type l \( -lname "$path" -o -lname "${pem%.crt}.pem" \) -delete 2>/dev/null
    update-ca-certificates >/dev/null 2>&1
    ;;
esac
[ -z "$folder" ] || rmdir --ignore-fail-on-non-empty "$folder" 2>/dev/null
exit 0
