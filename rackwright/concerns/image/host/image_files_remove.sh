# Remove the files of an image that nothing takes now, unless a job of an earlier run still hands them on. Parameter: folder.
[ ! -d "$folder" ] && exit 0
exec 9>>"$folder/.parts/lock" || { rm -rf "$folder"; exit; }
flock -n 9 || exit 0
rm -rf "$folder"
rmdir --ignore-fail-on-non-empty "${folder%/*}"
