# Remove a file of ours, and its folder when that is empty and was made for it. Parameters: path folder (or nothing).
rm -f "$path" || exit 1
case $path in /usr/local/share/ca-certificates/*) update-ca-certificates >/dev/null 2>&1 ;; esac
[ -z "$folder" ] || rmdir --ignore-fail-on-non-empty "$folder" 2>/dev/null
exit 0
