# Write all files of a release beside its place, check them, and move the folder in by a rename.
# Parameters: path sums. Standard input: "NAME BASE64" lines.
set -e
umask 022
new="$path.new.$$" old="$path.old.$$"
trap 'rm -rf "$new"' EXIT
mkdir -p "$new"
while read -r name data; do printf %s "$data" | base64 -d >"$new/$name"; done
(cd "$new" && sha256sum --check --strict --quiet "$sums")
sync -f "$new"
if [ -e "$path" ]; then mv -T "$path" "$old"; fi
mv -T "$new" "$path"
rm -rf "$old"
