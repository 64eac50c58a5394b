# Remove the files of an image that nothing takes now, unless a job of an earlier run still hands them on. Parameter: folder.
[ -d "$folder" ] || exit 0
# Without .parts nothing was ever taken into it; dash would end at an `exec` that cannot open its file.
if [ -d "$folder/.parts" ]; then
  exec 9>>"$folder/.parts/lock"
  flock -n 9 || exit 0
fi
rm -rf "$folder" && rmdir --ignore-fail-on-non-empty "${folder%/*}"
