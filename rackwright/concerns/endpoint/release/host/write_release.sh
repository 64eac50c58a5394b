# Put a release on the host. It appears whole, by one rename, and its folder is never replaced, because a container may
# have it mounted: files of it that were damaged are put back one by one, to the very bytes that SHA256SUMS names.
# Parameters: path sums. Standard input: "NAME BASE64" lines.
set -e
umask 022
new="$path.new"
mkdir -p "${path%/*}"
# Another run may be writing the same release, or have left it half written.
exec 9<"${path%/*}"
flock 9
rm -rf "$new"
trap 'rm -rf "$new"' EXIT
sync "${path%/*/*}" "${path%/*/*/*}"
mkdir "$new"
while read -r name data; do printf %s "$data" | base64 -d >"$new/$name"; done
(cd "$new" && sha256sum --check --strict --quiet "$sums")
if ! [ -d "$path" ]; then
  durable_folder "$path"
else
  sync "$new"/*
  for file in "$new"/*; do
    name=${file##*/}
    cmp -s "$file" "$path/$name" && continue
    [ -d "$path/$name" ] && rm -rf "${path:?}/$name"
    mv -fT "$file" "$path/$name"
  done
  sync "$path"
fi
