quit() { say "$1"; exit "${2:-1}"; }
trap '' PIPE
given_back() { # the lease, if it is this act's
  lease_id=$(cat "$JOB/lease" 2>/dev/null) && [ -n "$lease_id" ] || return 0
  rm -f "$JOB/lease"
  (
    lease=$run/lease id=$lease_id patience=3
#include lease_release.sh
  )
}
take_lease() { # when it is free: a run that only fetches, or waits for its turn, holds it up to its own switch, which waits for this
  taken=$(
    exec 2>/dev/null
    lease=$run/lease fence=$state/fence seen=0 displace= ttl=$1 patience=5 place= pid=0 started=0
    run=$(tr -cd 0-9a-f </proc/sys/kernel/random/uuid | cut -c1-16)
    user=watch machine=$(uname -n) purpose="restart of endpoint $endpoint by the watch"
#include lease_acquire.sh
  ) || return 0
  case $taken in 'lease taken '*) taken=${taken#lease taken }; printf '%s\n' "${taken%% *}" >"$JOB/lease" ;; esac
}
cut_off() { # the act was ended from outside, or by the host's end: what was proven starts, and stays marked until it is proven again
  given_back
  began=$(rows | sed -n '$s/^\([0-9]*\) restart begun .*/\1/p')
  [ -n "$began" ] || exit 0
  end_row cut "it was ended before it was done"
  [ "$(systemctl is-system-running)" = stopping ] || systemctl start --no-block "$unit"
  exit 0
}
in_the_way() { # prints what has this host in hand, or fails
  [ ! -e "$state/drained" ] || { say "the host is drained"; return 0; }
  for trial in "$state"/endpoints/*/trial "$state"/dockerd/trial "$state"/guards/*; do
    [ ! -e "$trial" ] || { say "$trial is not decided"; return 0; }
  done
  for other in $(systemctl list-units --plain --no-legend --state=active,activating,deactivating 'rackwright-guard-*' 'rackwright-job-*' | cut -d' ' -f1); do
    # Jobs that fetch, hash, ask an image or wait stop nothing.
    case $other in rackwright-job-model-* | rackwright-job-hash-* | rackwright-job-pull-* | rackwright-job-fetch-* | rackwright-job-check-* | rackwright-job-wait-*) continue ;; esac
    say "$other is at work"
    return 0
  done
  uptime
  paused=$(head -n 1 "$run/engines-paused" 2>/dev/null | tr -cd 0-9 | cut -c1-9)
  [ "${paused:-0}" -le "$up" ] || { say "the watch is paused"; return 0; }
  if [ "$(number "$run/lease" taken 0)" -le "$up" ] && [ "$(number "$run/lease" expires 0)" -gt "$up" ]; then
    case $(value "$run/lease" purpose) in *'rackwright teardown'* | *'rackwright drain'* | *'rackwright undrain'* | *'rackwright reboot'*) say "the host's lease: $(value "$run/lease" purpose | cut -c1-100)"; return 0 ;; esac
  fi
  return 1
}
report() { # kind, text: at most once an hour the same row
  [ "$(rows | tail -n 1 | cut -d' ' -f2-)" = "$1 - $2" ] && [ $(($(date +%s) - $(rows | tail -n 1 | cut -d' ' -f1))) -lt 3600 ] && return 0
  uptime
  # A full disk keeps no row, and this host's memory has the last one.
  if ! add_row "$1" - "$2" 2>/dev/null && read -r at row 2>/dev/null <"$JOB/reported" && [ "$row" = "$1 - $2" ] && [ $((up - at)) -lt 3600 ]; then return 0; fi
  printf '%s\n' "$up $1 - $2" >"$JOB/reported"
  tell would-restart "would-restart-$endpoint" "endpoint $endpoint $why_now: $signs; $2"
}
well() { # the look says itself that the hang has ended
  tell_resolved restart "restart-$endpoint" "endpoint $endpoint was restarted and proved itself${cut:+; $cut}"
  [ ! -f "$JOB/reported" ] || tell_resolved would-restart "would-restart-$endpoint" "endpoint $endpoint proved itself"
  rm -f "$JOB/reported"
}
[ "${2:-}" != after ] || cut_off
[ -f "$watched" ] || quit "endpoint $endpoint is not watched" 0
mkdir -p "$JOB" || exit 1
: >"$JOB/log"
: >"$JOB/events"
cat /proc/sys/kernel/random/uuid >"$JOB/nonce"
cut -d' ' -f1 /proc/uptime >"$JOB/began"

hosts=$(number "$watched" hosts 1) index=$(number "$watched" index 0) limit=$(number "$watched" max_unavailable 1)
peers=$(value "$watched" peers) load=$(number "$watched" load 1800) after=$(number "$watched" after 120)
stop=$(number "$etc/act-$endpoint" stop 60) drain=$(number "$etc/act-$endpoint" drain 300)
questions=$home/proofs/$(basename "$(readlink "$home/proven")")
proof=$(number "$questions" '# seconds' 900)
window=$((3 * (after + drain + load + proof)))
sign=hang why_now='is not proven' signs=$(value "$look" signs | cut -c1-300)

is_left() { [ -e "$marks/$own" ]; } # by an act that was cut, or whose proof was refused
hung() { # whether the look, of the last minutes, still finds it so, or an earlier act has left it marked
  uptime
  [ $((up - $(number "$look" looked -999))) -le 180 ] || return 1
  case $(value "$look" state) in hung) sign=hang why_now=hangs ;; dead) sign=dead why_now='is dead' ;; *) is_left ;; esac
}
dockerd_first() { # whether Docker could not start it and the look has just found that: the check that repairs dockerd comes first
  [ "$(value "$look" state)" = dead ] && [ "$(number "$look" since 0)" = "$(number "$look" looked -1)" ] || return 1
  systemctl is-failed --quiet "$unit" || return 1
  journalctl --boot --unit "$unit" --no-pager --output cat --lines 60 2>/dev/null | grep -q '^docker: Error response from daemon: '
}
may_restart() { # whether enough others serve; sets `ready`; fails with `why`
  ask_peers
  [ "$hosts" -gt 1 ] || return 0
  [ "$ready" -ge "$needed" ] && return 0
  why="$ready of $((hosts - 1)) others serve, and $needed must (rollout.max_unavailable)"
  return 1
}
give_up() { # it stays out, unless that would leave less than half of its group, or no host
  [ "$hosts" -gt 1 ] && [ "$ready" -ge 1 ] && [ $((2 * ready)) -ge "$hosts" ] || return 1
  why="restarted $tries times, and it does not last; its dumps are in $home/failed"
  mark "sick-$endpoint" down watch "$why"
  unmark "$own"
  systemctl stop "$unit"
  # Nor does a boot start it: a commit enables it again. A reload could detach the GPUs of the host's other endpoints.
  systemctl disable --quiet --no-reload "$unit"
  add_row sick - "$why"
  tell sick "sick-$endpoint" "endpoint $endpoint stays out: $why; next: find the cause there, then deploy again"
  quit "sick: $why" 3
}
restarts() { [ "$(value "$watched" act)" = restart ]; }
# A mark that an act has left before the setting changed is still taken away by a proof.
restarts || is_left || quit "watch.act is not restart" 0
[ ! -e "$marks/sick-$endpoint" ] || quit "it is marked sick" 0
[ "$(number "$home/binding" RANK 0)" = 0 ] || quit "its head restarts all hosts of its group" 0
! dockerd_first || quit "left to the repair of dockerd" 0
exec 7>>"$run/switch.lock"
flock --nonblock 7 || quit "a switch of this host is under way"
hung || quit "it is not hung" 0
if other=$(in_the_way); then quit "left alone: $other"; fi
if [ "$(readlink "$home/current")" != "$(readlink "$home/proven")" ] || ! cmp -s "$home/binding" "$home/proven-binding"; then quit "left alone: it is not what was proven last"; fi
[ -f "$questions" ] || { report tell "not restarted: its questions are not on this host; next: deploy again"; quit "no questions"; }
if is_left; then case $(value "$look" state) in hung | dead) ;; *)
  if started && prove; then
    unmark "$own" || quit "its mark could not be removed" 3
    add_row tell proven "it proves itself after an act that did not end well"
    well
    quit "proven again" 0
  fi
  signs="it serves, and does not prove itself: $why" ;;
esac; fi
restarts || quit "it is left marked, and watch.act is not restart" 0
in_turn || quit "$why" 0
uptime
asks_from=$up
may_restart || { report tell "not restarted: $why"; quit "$why"; }
if worn "$window"; then
  give_up
  # Its group cannot spare it: again and again, with a pause that doubles from `after` up to an hour.
  pause=$after count=$tries
  while [ "$count" -gt 3 ] && [ "$pause" -lt 3600 ]; do pause=$((2 * pause)) count=$((count - 1)); done
  [ "$pause" -le 3600 ] || pause=3600
  # Until then no new request should go there.
  [ $(($(date +%s) - $(last_end))) -ge "$pause" ] || { is_left || mark "$own" down watch "$sign: $signs; restarted $tries times"; quit "it does not last, and its group cannot spare it: the next restart comes after $pause s"; }
fi
if ! mark "$own" down watch "$sign: $signs" "$(cat "$JOB/lease" 2>/dev/null)" 2>/dev/null; then
  report tell "not restarted: its mark could not be written in $marks; next: df $marks"
  quit "its mark could not be written"
fi
withdraw() { unmark "$own"; quit "$1"; }
if [ "$hosts" -gt 1 ]; then
  uptime
  [ $((up - asks_from)) -le 5 ] || withdraw "its peers took too long to answer"
  # Who marked itself at the same moment is seen by then, and sees this host.
  sleep 10
  first_among_peers || withdraw "${first:-another host} restarts first"
  [ "$ready" -ge "$needed" ] || withdraw "too few others serve"
fi
longest=$((60 + 150 + stop + 70 + load + 30 + proof + 60))
uptime
printf '%s\n' "$((up + longest)) $endpoint" >"$run/act-until"
take_lease "$longest"
add_row restart begun "$sign: $signs"
began=$(rows | tail -n 1 | cut -d' ' -f1)
tell restart "restart-$endpoint" "endpoint $endpoint is restarted, because it $why_now: $signs"
wait_for_askers
keep_evidence
count_cut
cut=$cut$untold
if restart && prove; then
  unmark "$own" || quit "its mark could not be removed" 3
  uptime
  end_row proven "$cut; $sign: $signs"
  given_back
  well
  quit "proven again" 0
fi
end_row failed "$cut; $why"
given_back
tell restart "restart-$endpoint" "endpoint $endpoint was restarted and does not serve: $why; $cut; its dump: ${kept:-none}"
failed=$why
if worn "$window"; then ask_peers; give_up; fi
quit "the restart did not help: $failed" 3
