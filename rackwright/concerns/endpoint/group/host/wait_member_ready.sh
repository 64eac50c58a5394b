#!/bin/sh
# Ready means: the head answers /health with 200. The others do not answer themselves; the head tells them by their lines.
. "${0%/*}/group"
is_ready() {
  if [ "$RANK" = 0 ]; then
    [ "$(curl --silent --noproxy '*' --max-time 5 --output /dev/null --write-out '%{http_code}' "$url/health")" = 200 ]
  else
    [ "$(cat "$here/ready" 2>/dev/null)" = "$MAINPID" ]
  fi
}
until is_ready; do
  kill -0 "$MAINPID" 2>/dev/null || { echo "the server died before it was ready" >&2; exit 1; }
  sleep 0.5
done
[ "$RANK" != 0 ] || printf '%s\n' "$MAINPID" >"$here/ready"
exit 0
