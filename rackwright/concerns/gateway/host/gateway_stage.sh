# Make room for files that have not been checked yet; those of a run that was cut go. Parameters: folder new home.
[ -d "$folder/certificates" ] || mkdir -p "$folder/certificates" || exit 1
chmod 0755 "$folder" && chmod 0700 "$folder/certificates" && mkdir -p "$home" || exit 1
rm -rf "$new" && mkdir -m 0700 "$new" "$new/certificates"
