# Remove the files of an image that is loaded. Parameter: folder.
[ ! -e "$JOB/loaded" ] || rm -rf "$folder"
rmdir --ignore-fail-on-non-empty "${folder%/*}" 2>/dev/null || :
