# Print in one line: the unit's state, its automatic restarts, the release that runs, and what /health answers. Where
# the engine died, two more: `after SECONDS`, since its switch, and `error` with the last error that it printed before.
# Parameters: unit container url home. Comes after listener.sh: another process's answer at that port does not count.
taken=$(listener_stranger)
[ -z "$taken" ] || { printf 'stranger: %s\n' "$taken"; exit 0; }
label='{{if .State.Running}}{{index .Config.Labels "rackwright.release"}}{{end}}'
runs=$(timeout 60 docker inspect --format "$label" "$container" 2>/dev/null)
health=$(curl --silent --noproxy '*' --max-time 20 --output /dev/null --write-out '%{http_code}' "$url")
stands() { state=$(systemctl is-active "$unit") restarts=$(systemctl show --property=NRestarts --value "$unit"); }
# Read behind the answer: an engine that has just died is silent before `docker run` and its unit have ended.
for wait in 1 1 1 1 0; do
  stands
  case "$health $state ${restarts:-0}" in "000 active 0") sleep "$wait" ;; *) break ;; esac
done
printf '%s\n' "$state ${restarts:--} ${runs:--} $health"
case "$state ${restarts:-0}" in "active 0") exit 0 ;; esac
since=$(cat "$home/switched" 2>/dev/null) && [ -n "$since" ] || exit 0
died=$(journalctl --unit "$unit" --since "$since" --no-pager --output short-unix 2>/dev/null |
  sed -n 's/^\([0-9]*\)\..*Main process exited.*/\1/p' | head -n 1)
[ -z "$died" ] || printf 'after %s\n' "$((died - $(date -d "$since" +%s)))"
said=$(journalctl --unit "$unit" --since "$since" --no-pager --output cat 2>/dev/null | sed '/Scheduled restart job/q' |
  grep -E '(Error|Exception)(: |:?$)|[Oo]ut of memory|[Ff]atal|core dumped' | tail -n 1 | cut -c1-300)
[ -z "$said" ] || printf 'error %s\n' "$said"
