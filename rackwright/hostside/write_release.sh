# Write all files of a release beside its place, check them, and move the folder in by a rename.
# Parameters: path sums. Standard input: "NAME BASE64" lines.
set -e
umask 022
new="$path.new.$$" old="$path.old.$$"
trap 'rm -rf "$new"' EXIT
mkdir -p "$new"
# Another run may be writing the same release; and one that is there whole may be mounted, so it stays as it is.
exec 9<"${path%/*}"
flock 9
while read -r name data; do printf %s "$data" | base64 -d >"$new/$name"; done
(cd "$new" && sha256sum --check --strict --quiet "$sums")
if cmp -s "$new/$sums" "$path/$sums" && (cd "$path" && sha256sum --check --strict --status "$sums"); then exit 0; fi
sync -f "$new"
if [ -e "$path" ]; then mv -T "$path" "$old"; fi
mv -T "$new" "$path"
rm -rf "$old"
