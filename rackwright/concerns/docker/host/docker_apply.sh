# Put the configuration of dockerd in place and make dockerd take it. Parameters: daemon_json and dropin (paths),
# daemon_text and dropin_text (base64; empty removes the file), action (reload, restart, start), runtime (that it must know).
# It stands behind docker_valid.sh, which has behind. The file $reason, if any, gets what went wrong.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
put() {
  file=$(behind "$1") || return 1
  if [ -z "$2" ]; then rm -f "$file" && { [ ! -d "${file%/*}" ] || sync "${file%/*}"; }; return; fi
  mkdir -p "${file%/*}" || return 1
  printf %s "$2" | base64 -d >"$file.new" || return 1
  chmod --reference="$file" "$file.new" 2>/dev/null || chmod 0644 "$file.new"
  chown --reference="$file" "$file.new" 2>/dev/null
  sync "$file.new" && mv -fT "$file.new" "$file" && sync "${file%/*}"
}
complain() { # in stderr all that the host says of it, in the reason the line that says most
  state=$(timeout 10 systemctl status --no-pager --lines=0 docker.service 2>&1 | sed 6q)
  last=$(timeout 10 journalctl --unit=docker.service --lines=15 --no-pager --output=cat)
  printf "%s\n" "$1" "$state" "$last" >&2
  words=$(printf "%s\n" "$last" | grep -oE "(failed to start|unable to configure) .*" | tail -n 1)
  words=${words:-"$(printf "%s\n" "$state" | sed -n "s/^ *Active: //p"), its last line: $(printf "%s\n" "$last" | tail -n 1)"}
  silent=$(command -v docker_start_waits >/dev/null && docker_start_waits 5 | head -n 1)
  printf "%s\n" "$1 ${silent:-$words}" >"${reason:-/dev/null}"
  printf "start\n" >"${cause:-/dev/null}"
  exit 1
}
put "$daemon_json" "$daemon_text" && put "$dropin" "$dropin_text" || exit 1
# An installation in between may have started it, with the previous configuration.
[ "$action" = start ] && systemctl is-active --quiet docker.service && action=restart
[ "$action" = reload ] || systemctl daemon-reload
systemctl reset-failed docker.service 2>/dev/null
# Its unit has no limit of its own to start within.
timeout 180 systemctl "$action" docker.service || complain "dockerd did not $action with the changed configuration:"
seconds_up() { read -r up _ </proc/uptime; printf %s "${up%%.*}"; }
until_second=$(($(seconds_up) + 40))
until timeout 20 docker info >/dev/null 2>&1; do
  [ "$(seconds_up)" -lt $until_second ] || complain "dockerd does not answer after its $action:"
  sleep 0.2
done
# A SIGHUP is answered by nothing: what dockerd then says of itself is the answer.
until_second=$(($(seconds_up) + 10))
while [ -n "$runtime" ] && ! timeout 20 docker info --format "{{json .Runtimes}}" | grep -q "\"$runtime\""; do
  [ "$(seconds_up)" -lt $until_second ] || complain "dockerd does not know the runtime $runtime after its $action:"
  sleep 0.2
done
