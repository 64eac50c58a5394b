# One restart with its evidence and its proof. What an engine says may hold its users' words: all of it is root's alone.
event() { case $1 in kept) kept=$2; printf '%s\n' "$2" >"$JOB/kept" ;; esac; }
keep_journal() (
  label=watch part=all
#include keep_log.sh
)
kernel_stacks() { # of every process of the container: where the kernel has each thread
  pid=$(timeout 20 docker inspect --format '{{.State.Pid}}' "$container" 2>/dev/null) && [ "${pid:-0}" -gt 0 ] || return 0
  group=/sys/fs/cgroup$(sed -n 's/^0:://p' "/proc/$pid/cgroup")
  for pid in $(find "$group" -name cgroup.procs -exec cat {} + 2>/dev/null | head -n 200); do
    printf '\n== %s %s\n' "$pid" "$(cat "/proc/$pid/comm" 2>/dev/null)"
    for task in $(ls "/proc/$pid/task" 2>/dev/null | head -n 50); do
      task=/proc/$pid/task/$task
      printf '%s %s %s\n' "${task##*/}" "$(cat "$task/comm" 2>/dev/null)" "$(sed -n 's/^State:\t//p' "$task/status" 2>/dev/null)"
      head -n 12 "$task/stack" 2>/dev/null
    done
  done
}
# SGLang's images have py-spy. It has no more rights there than the engine: nothing of an image runs as the host's root.
engine_stacks() {
  timeout 40 docker exec "$container" sh -c 'command -v py-spy >/dev/null || exit 0
for pid in $(ls /proc | grep "^[0-9]*$" | head -n 64); do grep -aq python "/proc/$pid/cmdline" 2>/dev/null && timeout 5 py-spy dump --pid "$pid"; done' 2>&1 </dev/null
}
# Length and time of each open request, and who sent it: of its text nothing is kept here. Fails where they cannot be read.
connections() {
  pid=$(timeout 20 docker inspect --format '{{.State.Pid}}' "$container" 2>&1) || case $pid in *'o such '*) return 0 ;; *) return 1 ;; esac
  [ "${pid:-0}" -gt 0 ] || return 0
  read -r port <"$home/current/health-url" || return 1
  port=${port##*:} port=${port%%/*}
  found=$(timeout 20 nsenter --target "$pid" --net ss -tinHO state established "sport = :$port") || return 1
  [ -z "$found" ] || printf '%s\n' "$found" | awk '
    function of(name) { return match($0, " " name ":[0-9]+") ? substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 2) + 0 : 0 }
    { print "client=" $4, "received=" of("bytes_received"), "sent=" of("bytes_sent"), "seconds_since_received=" int(of("lastrcv") / 1000), "seconds_since_sent=" int(of("lastsnd") / 1000) }'
}
# A hung engine ends no connection, so each that has sent something is a request without its answer, or without the end of it.
count_cut() { # sets `cut`, what the stop cuts, for people
  sent=$(connections) || { cut="an unknown number of requests cut"; return; }
  cut=$(printf '%s' "${sent:+$sent$nl}" | awk '$2 != "received=0" { n++ } END { print n + 0, "request" (n == 1 ? "" : "s"), "cut" }')
}
nl='
'
keep_evidence() { # before anything is stopped
  kept= ; rm -f "$JOB/kept"
  keep_journal
  kept=$(cat "$JOB/kept" 2>/dev/null) kept=${kept%.log}
  [ -n "$kept" ] || return 0
  { cat "$look"; connections; } >"$kept.look" 2>/dev/null
  # The names of threads and the output of py-spy are the container's: text, and not without an end.
  { kernel_stacks; engine_stacks; } 2>/dev/null | head -c 4194304 | tr -cd '\11\12\40-\176' >"$kept.stacks"
  timeout 30 nvidia-smi -q >"$kept.nvidia-smi" 2>&1
  journalctl --boot _TRANSPORT=kernel --no-pager --output short-monotonic 2>/dev/null | tail -n 500 >"$kept.kernel"
}
#include askers.sh
wait_for_askers() { # until each gateway has heard it; what is open on a hung engine never ends; sets `untold`, the gateways that are gone
  asker_clock
  askers_await "$asker_now" out 60
  untold=
  for gone in $askers_gone; do untold="${untold:+$untold, }$gone"; done
  untold=${untold:+; not waited for: gateway $untold, which no longer asks}
}
started() { # wait until the unit is active, which means that /health answers 200; fails with `why`
  uptime
  begins=$up
  while uptime && [ $((up - begins)) -lt $((load + 30)) ]; do
    look_at=$(systemctl show --property=ActiveState,SubState "$unit" | tr '\n' ' ')
    case $look_at in
      *ActiveState=active*SubState=running*) return 0 ;;
      *SubState=auto-restart* | *ActiveState=failed*) why="the server died $((up - begins)) s after its start"; return 1 ;;
    esac
    sleep 1
  done
  why="not ready $((up - begins)) s after its start"
  return 1
}
restart() { # fails with `why`
  # A container that does not end leaves nothing to start: that is the driver's or the hardware's.
  timeout -k 10 $((stop + 60)) systemctl stop "$unit" || { why="its unit could not be stopped"; return 1; }
  systemctl reset-failed "$unit" 2>/dev/null
  systemctl start --no-block "$unit" || { why="its unit could not be started"; return 1; }
  started
}
prove() { # by the questions of the switch that has proven this release; fails with `why`
  : >"$reason"
  : >"$cause"
  timeout -k 10 "$proof" sh "$questions" >>"$JOB/log" 2>&1 && return 0
  why=$(tail -n 1 "$reason" | tr -c '[:print:]' ' ' | cut -c1-300)
  why=${why:-it did not prove itself within $proof s}
  return 1
}
