# List what an endpoint could go back to. Parameters: home (the folder of all endpoints).
# A line a release: endpoint, hash, spec.json as base64, and "ok" or what is no longer on the host.
for folder in "$home"/*/; do
  [ -d "$folder/releases" ] || continue
  endpoint=$(basename "$folder")
  printf '%s\n' "history $endpoint $(tr '\n' ' ' <"$folder/history" 2>/dev/null)"
  for release in "$folder"/releases/*/; do
    spec="$release/spec.json"
    [ -f "$spec" ] || continue
    gone=
    image=$(sed -n 's/^ "image": "\(.*\)",$/\1/p' "$spec")
    docker image inspect "$image" >/dev/null 2>&1 || gone="image $image"
    for source in $(sed -n 's/^  "\(\/[^:"]*\):[^"]*:r[ow]",*$/\1/p' "$spec"); do
      [ -e "$source" ] || gone="$gone $source"
    done
    printf '%s\n' "release $endpoint $(basename "$release") $(base64 -w0 <"$spec") ${gone:-ok}"
  done
done
exit 0
