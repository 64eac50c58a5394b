# Wait until an endpoint's unit is active, which means that /health answered 200; tell at once when it died.
# It comes after port_holder.sh. Parameters: unit load_timeout missing (a file in which the head of a group
# lists the members it waits for); asked (microseconds since boot, or nothing): when start.sh has started it.
# A clock that is put back would hide what was written before: journalctl goes by it, and so does `since`.
clock_then=$(date +%s) up_then=$(cut -d. -f1 /proc/uptime)
since_then() { # sets `since` back by as much as the clock was since this began
  stepped=$(($(cut -d. -f1 /proc/uptime) - up_then + clock_then - $(date +%s)))
  [ "$stepped" -le 2 ] || { since=$(date -d "@$(($(date -d "$since" +%s) - stepped))" "+%F %T") && clock_then=$((clock_then - stepped)); }
}
# Together with --since, journalctl's own --lines would count from the beginning.
last_lines() { since_then; journalctl --unit "$unit" --since "$since" --no-pager --output cat 2>/dev/null | tail -n "$1" | cut -c1-"$2"; }
# Before it starts a container, the unit removes one of that name; docker reports it missing, which looks like a fault.
lacks() { # of several hosts that serve together, who has not come
  if [ -s "$missing" ]; then printf '%s' ": it waits for $(cut -c1-200 "$missing")"; fi
}
news() {
  if [ -s "$missing" ]; then printf '%s' "waiting for $(cut -c1-100 "$missing")"; return; fi
  # The own server may answer beside it, so that the wait would end with load_timeout and no reason.
  taken=$(port_holder)
  if [ -n "$taken" ]; then printf '%s' "${taken%%; next:*}: it is waited for until that process ends"; return; fi
  said=$(last_lines 1 100)
  case $said in *"No such container"*) said="its container starts" ;; esac
  printf '%s' "$said"
}
# After a power cut dockerd can hold the port of a container that is gone, until it is restarted itself:
# https://github.com/moby/moby/issues/25981
kept_port() {
  journalctl --sync 2>/dev/null || true
  held=$(last_lines 30 300 | sed -n 's/.*Bind for [^ ]*:\([0-9][0-9]*\) failed: port is already allocated.*/\1/p' | tail -n 1)
  [ -n "$held" ] && others=$(timeout 20 docker ps --quiet --filter "publish=$held") && [ -z "$others" ] && echo "$held"
}
held_by_dockerd() {
  if held=$(kept_port); then
    printf '%s' ": dockerd holds port $held and no container has it, as after a power cut (github.com/moby/moby/issues/25981); next: systemctl restart docker on this host, then run the same command again"
  fi
}
killed_for_memory() { # the last process of this host that the kernel has killed for want of memory since this start
  since_then
  journalctl --boot _TRANSPORT=kernel --since "$since" --no-pager --output cat 2>/dev/null |
    sed -n 's/.*[Oo]ut of memory: Killed process [0-9]* (\([^)]*\)).*/the kernel killed \1 for want of memory/p' | tail -n 1
}
why_it_died() {
  message=$(last_lines 4000 2000 | own_error)
  if [ "${message%% *}" -le 20 ] 2>/dev/null || [ -z "$message" ]; then
    oom=$(killed_for_memory)
    [ -z "$oom" ] || message="99 $oom"
  fi
  printf '%s' "${message#* }" | cut -c1-400
}
# What Docker said when it could not start the container at all; nothing when the server itself ended. What the server
# prints is not Docker's message, so the status of `docker run` must say so, too.
refused() {
  case $status in 125 | 126 | 127) ;; *) return ;; esac
  last_lines 60 600 | sed -n '/^docker: /p; /^unknown \(shorthand \)\{0,1\}flag: /p; /^invalid argument .* flag: /p' | tail -n 1
}
whose() { # Docker's words: a request that Docker does not understand is the release's, all else is the host's
  case $1 in
    *'executable file not found'* | *'exec: "'* | *'conflicting options'* | *'nvalid CapAdd'* | *'nvalid CapDrop'* | *'invalid option'* | *'invalid argument "'*) echo start ;;
    'docker: Error response from daemon'* | 'docker: Cannot connect'* | 'docker: error during connect'*) echo docker ;;
    *) echo start ;;
  esac
}
chains_gone() {
  command -v docker_lacks >/dev/null || return 0
  docker_lacks "$(timeout 25 docker info --format '{{json .}}' 2>/dev/null)" "$(systemctl show --property=MainPID --value docker.service)" |
    tr '\n' ',' | sed 's/,$//; s/,/, /g'
}
give_up() {
  # The last output of a dying server reaches the journal a little after its end.
  sleep 1
  own=$(why_it_died) held=$(held_by_dockerd) kind=start died=$1
  said=$(refused)
  if [ -n "$said" ]; then
    own='' kind=$(whose "$said") gone=$(chains_gone)
    died="Docker could not start the container: $(printf '%s' "${said#docker: }" | sed 's/^Error response from daemon: //; s/ ([0-9a-f]\{64\})//' | cut -c1-300)"
    [ -z "$gone" ] || held="$held: Docker's chains are gone ($gone); next: systemctl restart docker on this host, then run the same command again"
  fi
  why="$died${own:+: $own}$held" head="$died$held"
  taken=$(port_holder)
  # Whatever the server says of its end: it could not have the port.
  [ -z "$taken" ] || { why="$taken ($died)"; head=$why; kind=stranger; }
  printf '%s\n' "$why" >"${reason:-/dev/null}"
  printf '%s\n' "$kind" >"${cause:-/dev/null}"
  printf '%s\n' "$head;${own:+ its own last error, then} its last lines:" ${own:+"$own"}
  last_lines 30 300
  exit 1
}
: "${since:=$(date -d '10 minutes ago' '+%F %T')}"
look() { # at the unit, by one question
  active='' sub='' job='' result='' began='' status=
  while IFS='=' read -r key value; do
    case $key in
      ActiveState) active=$value ;; SubState) sub=$value ;; Job) job=$value ;; Result) result=$value ;;
      ExecMainStartTimestampMonotonic) began=$value ;; ExecMainStatus) status=$value ;;
    esac
  done <<END
$(systemctl show --property=ActiveState,SubState,Job,Result,ExecMainStartTimestampMonotonic,ExecMainStatus "$unit")
END
}
quarters=0 waited=0
pause() { # four looks a second in the first minute, then one: a long load is not asked that often
  if [ $quarters -lt 240 ]; then sleep 0.25; quarters=$((quarters + 1)); else sleep 1; quarters=$((quarters + 4)); fi
  waited=$((quarters / 4))
}
while :; do
  look
  case "$active/$sub/${job:-0}" in
    active/running/*) event progress "ready after $waited s"; exit 0 ;;
    deactivating/* | failed/* | activating/auto-restart*)
      [ "${began:-0}" -lt "${asked:-0}" ] && start_anew && pause && continue
      command -v free_port >/dev/null && free_port && pause && continue
      if [ "$result" = timeout ]; then give_up "not ready within its load_timeout$(lacks)"; fi
      give_up "the server died after $waited s" ;;
    inactive/*/0) give_up "the server ended after $waited s" ;;
  esac
  if [ $waited -ge "$load_timeout" ]; then give_up "not ready after $waited s$(lacks)"; fi
  pause
  [ $((quarters % 20)) = 0 ] && event progress "loading, $waited s: $(news)"
done
