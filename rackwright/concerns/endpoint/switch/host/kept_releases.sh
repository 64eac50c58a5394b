# List what an endpoint could roll back to. Parameters: home (the folder of all endpoints).
# A line a release: endpoint, hash, spec.json as base64, and "ok" or what is no longer on the host.
# "docker unknown": Docker did not answer, so nothing is known of any image, and none is called gone.
known=yes
timeout 25 docker version >/dev/null 2>&1 || { known=no; echo 'docker unknown'; }
has() { # an image; one of which Docker says nothing may be there
  [ "$known" = yes ] || return 0
  said=$(timeout 60 docker image inspect --format . "$1" 2>&1) && return
  case $said in *'No such image'*) return 1 ;; esac
}
for folder in "$home"/*/; do
  [ -d "$folder/releases" ] || continue
  endpoint=$(basename "$folder")
  [ -f "$folder/replaced-by" ] && printf '%s\n' "replaced $endpoint $(tr '\n' ' ' <"$folder/replaced-by")"
  [ -f "$folder/proven-binding" ] && printf '%s\n' "binding $endpoint $(base64 -w0 <"$folder/proven-binding")"
  printf '%s\n' "history $endpoint $(tr '\n' ' ' <"$folder/history" 2>/dev/null)"
  for release in "$folder"/releases/*/; do
    spec="$release/spec.json"
    [ -f "$spec" ] || continue
    gone=
    [ -f "$release/needs" ] && while read -r kind name || [ -n "$kind" ]; do
      case $kind in
        image) has "$name" || gone="$gone $name" ;;
        path) [ -e "$name" ] || gone="$gone $name" ;;
      esac
    done <"$release/needs"
    printf '%s\n' "release $endpoint $(basename "$release") $(base64 -w0 <"$spec") ${gone:-ok}"
  done
done
exit 0
