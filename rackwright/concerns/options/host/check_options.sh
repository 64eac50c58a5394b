# Build an endpoint's options inside its image, in a container that serves nothing, and keep the answer beside the release.
# Parameters: container label (both of remove_helper.sh) limit (seconds) marker program (base64) keep run (the docker
# command) next (what to type).
set -u
folder=$(dirname "$marker")
mkdir -p "$folder"
find "$folder" -type f -printf '%T@ %p\n' | sort -rn | tail -n "+$keep" | cut -d' ' -f2- | while read -r old; do rm -f "$old"; done
work=$(mktemp -d)
trap 'remove_helper; rm -rf "$work"' EXIT
trap 'exit 143' HUP TERM INT
remove_helper
printf %s "$program" | base64 -d >"$work/program"
eval "timeout -k 5 $limit $run" <"$work/program" >"$work/answer" 2>"$work/errors"
status=$?

not_run() { # a sentence that needs no escapes in JSON
  case $status in
    124 | 137) printf '%s\n' "it took more than $limit s" ;;
    *) printf '%s\n' "docker run ended with $status: $(grep -v '^$' "$work/errors" | tail -n 1 | tr -cd '[:alnum:] .,:;/_()=-' | cut -c 1-300)" ;;
  esac
}

case $status in
  0 | 3) ;;
  *)
    why=$(not_run)
    printf '{"checked": false, "refused": [], "why": "%s"}\nnot checked inside the image: %s\n' "$why" "$why" >"$work/answer"
    ;;
esac
# The image has written it: no more of it is kept than a check of ours says.
head -c 262144 "$work/answer" | sed -n 1p >"$marker.new"
sync -d "$marker.new"
mv -f "$marker.new" "$marker"
head -c 262144 "$work/answer" | sed 1d
[ "$status" != 3 ] && exit 0
printf '%s\n' "what serves goes on serving; next: $next"
exit 1
