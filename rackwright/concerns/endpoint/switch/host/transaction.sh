# Switch an endpoint, prove it, and commit or roll back: all on the host, so that it ends well without supervision.
# Parameters: release home gate deadline; previous (what to roll back to, in words, or nothing); known ("yes": this release
# was proven before); and scripts: prepare forward prove commit keep_log back prove_back halt ready ready_back, and faults,
# which measures the host itself. What `prepare` marks as not admitted, `ready` and `ready_back` let in again.
# It tells the control machine how it goes by events; what it prints is for people.
# trial: a file that exists from before anything moves until this is decided, with `trying`, a script that rolls back:
# the host runs it when this is cut. after: a script that follows the commit; what it does not get done, the next run does.
# admit and leave: scripts that let clients in before the commit, where the control machine asks for that, and take them away again.
# marking: a script that marks the endpoints as down before anything moves; unmark and undone: scripts that remove the marks once
# what serves is proven, and put those from before it back where nothing was begun. A job that is cut leaves its marks.
# Ends 0 committed, 3 rolled back, 4 nothing serves, 5 not switched, 6 it answers but is not committed.
# A part that fails says why in $reason, and in $cause what kind of failure it is, where it knows: check, start, hook.
export reason="$JOB/reason" cause="$JOB/cause"
run() { # a part, from a file: it may be longer than an argument can be
  printf '%s\n' "$1" >"$JOB/part" && sh "$JOB/part"
}
now() { cut -d' ' -f1 /proc/uptime; }
clock() { read -r seconds _ </proc/uptime; seconds=${seconds%%.*}; } # sets `seconds`, without a program: it is asked often
elapsed() { printf '%s %s\n' "$1" "$2" | awk '{ printf "%.1f", $2 - $1 }'; }
why() {
  if [ -s "$reason" ]; then tail -n 1 "$reason"; else tail -n 1 "$JOB/log"; fi |
    tr -c '[:print:]' ' ' | cut -c1-600 | sed 's/ *$//'
}
blame() { # say what kind of failure it was: what the host has measured of itself explains whatever else failed
  moment=after run "$faults"
  [ ! -s "$cause" ] || event cause "$(tail -n 1 "$cause")"
}
finish() { # outcome, exit status
  [ "$1 $measured" = "rolled-back yes" ] && said= || said=$failure
  printf '%s\n' "release=$release" "outcome=$1" "time=$(date '+%F %T')" "reason=$said" | durable_file "$home/last-switch"
  # What an earlier switch has left unproven stays on trial when this one has not begun.
  case $1 in not-committed | not-switched) ;; *) durably_gone "$trial" ;; esac
  case $1 in committed | rolled-back) run "$unmark" ;; not-switched) run "$undone" ;; esac
  event end "$1 $failure"
  exit "$2"
}
admit() {
  : >"$reason"
  run "$1" || event not-admitted "$(why)"
}
let_in() { # clients, on trial: the control machine looks at the release beside others that serve
  clients=tried
  : >"$reason"
  if run "$admit" && run "$ready"; then
    clients=in
  else
    event progress "clients could not be let in on trial: $(why)"
  fi
  : >"$reason"
  : >"$cause"
}
take_out() { # clients that came on trial; a hook that fails here keeps nothing from rolling back
  [ "$clients" != out ] || return 0
  clients=out
  # Why the release is not kept is known already, and stays.
  (reason=/dev/null cause=/dev/null; run "$leave") || event progress "clients could not be taken away"
}
approved() { # whether the control machine, which asks the rest of the gate, says in time that the release is good
  [ "$gate" = full ] || return 0
  clock
  end=$((seconds + deadline))
  event word "$deadline"
  while clock && [ "$seconds" -lt "$end" ]; do
    # Taken away before it is read: the next message may come at any moment.
    if [ -f "$JOB/word" ] && mv -f "$JOB/word" "$JOB/heard"; then
      read -r word text <"$JOB/heard"
      [ "$word" = commit ] && return 0
      # It still asks, and is alive: the time begins again.
      [ "$word" = hold ] && end=$((seconds + deadline)) && continue
      [ "$word" = admit ] && { let_in; clock; end=$((seconds + deadline)); continue; }
      printf '%s\n' "$text" >"$reason"
      # A trial ends as it was meant to, by `over`: no check has refused it, and the next plan has nothing to say of it.
      if [ "$word" = over ]; then measured=yes; else printf 'check\n' >"$cause"; fi
      return 1
    fi
    sleep 0.2
  done
  printf '%s\n' "no word came within $deadline s (gate.commit_deadline) from the control machine, which asks the rest of the gate"
  [ "$known" = yes ] && return 0
  [ -z "$previous" ] && failure=$(why) && take_out && finish not-committed 6
  return 1
}
roll_back() {
  began=$(now)
  blame
  event failed "$failure"
  run "$keep_log"
  : >"$reason"
  if [ -z "$previous" ]; then
    run "$halt" && finish stopped 4
  elif event progress "rolling back to $previous" && run "$back"; then
    event back "$(elapsed "$began" "$(cat "$JOB/pointed")") $(elapsed "$began" "$(now)")"
    if run "$prove_back"; then
      admit "$ready_back"
      finish rolled-back 3
    fi
  fi
  event lost "$(why)"
  finish lost 4
}

failure=
measured=
clients=out
: >"$reason"
: >"$cause"
moment=before run "$faults"
if ! { run "$prepare" && run "$marking"; }; then
  failure=$(why)
  blame
  admit "$ready_back"
  finish not-switched 5
fi
printf %s "$trying" | durable_file "$trial" 0600 || { failure="$trial could not be written" && admit "$ready_back"; finish not-switched 5; }
if ! { run "$forward" && run "$prove" && approved; }; then
  failure=$(why)
  take_out
  roll_back
fi
if ! run "$commit"; then
  failure=$(why)
  take_out
  blame
  finish not-committed 6
fi
durably_gone "$trial"
run "$after" || event progress "$(why)"
[ "$clients" = in ] || admit "$ready"
finish committed 0
