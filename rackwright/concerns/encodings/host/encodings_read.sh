# SHA-256, mode, owner and name of each file that is there. Only what is not the file that a fetch has verified is hashed.
# Parameters: folder names marks (what was verified, a file each).
hangs "$folder" && exit 0
cd "$folder" 2>/dev/null || exit 0
set --
# A link is not Rackwright's: it may lead to another file tomorrow.
for name in $names; do [ ! -f "$name" ] || [ -L "$name" ] || set -- "$@" "$name"; done
# Each write changes a file's ctime, which no process can set.
[ "$#" = 0 ] || stat -c '%a:%U %i:%s:%.Y:%.Z %n' "$@" | while read -r mode seen name; do
  sum= known=
  [ ! -r "$marks/$name" ] || read -r sum known <"$marks/$name"
  [ "$known" = "$seen" ] || { sum=$(sha256sum "$name"); sum=${sum%% *}; }
  printf '%s\n' "$sum $mode $name"
done
exit 0
