# Print what an image accepts, as it says itself: one line of JSON, of at most a megabyte.
# Parameters: container label (both of remove_helper.sh) limit (seconds) program (base64) run (the docker command).
set -u
work=$(mktemp -d)
trap 'remove_helper; rm -rf "$work"' EXIT
trap 'exit 143' HUP TERM INT
remove_helper
printf %s "$program" | base64 -d >"$work/program"
eval "timeout -k 5 $limit $run" <"$work/program" >"$work/answer" 2>"$work/errors"
status=$?
case $status in
  0) head -c 1048576 "$work/answer" | sed -n 1p ;;
  124 | 137) printf '%s\n' "it took more than $limit s" >&2 ;;
  *) printf '%s\n' "docker run ended with $status: $(grep -v '^$' "$work/errors" | tail -n 1 | cut -c 1-300)" >&2 ;;
esac
exit "$status"
