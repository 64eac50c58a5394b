# Print a job's state, its log and its events, each from a byte on; wait up to `patience` tenths of a second for news.
# An event and the end end the wait; lines wait a second for more of them, since each answer costs a command over SSH.
# Parameters: unit folder nonce (the job's) log and events (the bytes) patience.
waited=0 since= news=no running=yes seen=
# Another run may have begun another job of the same name since: that one's bytes are not this one's.
[ ! -r "$folder/nonce" ] || read -r seen <"$folder/nonce"
[ -z "$seen" ] || [ "$seen" = "$nonce" ] || { echo other=yes; exit 0; }
value_of() { [ ! -r "$folder/$1" ] || cat "$folder/$1"; }
from() { tail -c +$(($2 + 1)) "$folder/$1" 2>/dev/null | head -c "$3" | base64 -w0; }
while :; do
  # Both are there from the start on. One program a look: whoever follows must not cost what he follows.
  # shellcheck disable=SC2046 - two numbers
  set -- $(stat -c %s "$folder/log" "$folder/events" 2>/dev/null)
  [ "${1:-0}" -le "$log" ] || since=${since:-$waited}
  if [ "${2:-0}" -gt "$events" ] || { [ -n "$since" ] && [ $((waited - since)) -ge 10 ]; }; then news=yes; fi
  # A job leaves a file when it ends, and when it is ended; systemd is asked about one that says nothing at all.
  if [ -e "$folder/status" ] || [ -e "$folder/ended" ] || { [ -z "$since" ] && [ $waited -ge "$patience" ]; } || [ $# = 0 ]; then
    case "$(systemctl is-active "$unit")" in
      active | activating | deactivating | reloading) running=yes ;;
      *) running=no ;;
    esac
  fi
  if [ $running = no ] || [ $news = yes ] || [ $waited -ge "$patience" ]; then break; fi
  if [ $waited -lt 10 ]; then sleep 0.2; waited=$((waited + 2)); else sleep 0.5; waited=$((waited + 5)); fi
done
printf 'running=%s\nstatus=%s\nended=%s\n' $running "$(value_of status)" "$(value_of ended)"
# The log first: an event has its place in it, and must not come after what was printed later.
printf 'log=%s\n' "$(from log "$log" 65536)"
printf 'events=%s\n' "$(from events "$events" 1048576)"
