#!/bin/sh
# Ready means: the head answers /health with 200. The others do not answer themselves; the head tells them by their lines.
. "${0%/*}/group"
# A 200 may be another process's, which has taken the port while it was free: the container must run, and its own processes listen.
is_own() {
  id=$(timeout 20 docker inspect --type container --format '{{if .State.Running}}{{.Id}}{{end}}' "$container" 2>/dev/null)
  [ -n "$id" ] || return 1
  for pid in $(ss -Hltnp "sport = :${url##*:}" 2>/dev/null | grep -o 'pid=[0-9]*' | tr -cd '0-9\n'); do
    grep -q "$id" "/proc/$pid/cgroup" && ! grep -q 'user\.slice' "/proc/$pid/cgroup" || return 1
  done
}
is_ready() {
  if [ "$RANK" = 0 ]; then
    [ "$(curl --silent --noproxy '*' --max-time 5 --output /dev/null --write-out '%{http_code}' "$url/health")" = 200 ] && is_own
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
