# Print a job's state, its log and its events, each from a byte on; wait up to `patience` fifths of a second for news.
# Parameters: unit folder nonce (the job's) log and events (the bytes) patience.
waited=0
# Another run may have begun another job of the same name since: that one's bytes are not this one's.
seen=$(cat "$folder/nonce" 2>/dev/null)
[ -z "$seen" ] || [ "$seen" = "$nonce" ] || { echo other=yes; exit 0; }
size() { stat -c %s "$folder/$1" 2>/dev/null || echo 0; }
from() { tail -c +$(($2 + 1)) "$folder/$1" 2>/dev/null | head -c "$3" | base64 -w0; }
while :; do
  # A job that ends by itself leaves its status; whether it was ended otherwise is asked once a second.
  if [ -e "$folder/status" ] || [ $((waited % 5)) = 0 ]; then
    case "$(systemctl is-active "$unit")" in
      active | activating | deactivating | reloading) running=yes ;;
      *) running=no ;;
    esac
  fi
  if [ "$running" = no ] || [ "$(size log)" -gt "$log" ] || [ "$(size events)" -gt "$events" ]; then break; fi
  [ $waited -ge "$patience" ] && break
  waited=$((waited + 1))
  sleep 0.2
done
printf 'running=%s\nstatus=%s\nended=%s\n' "$running" "$(cat "$folder/status" 2>/dev/null)" "$(cat "$folder/ended" 2>/dev/null)"
# The log first: an event has its place in it, and must not come after what was printed later.
printf 'log=%s\n' "$(from log "$log" 65536)"
printf 'events=%s\n' "$(from events "$events" 1048576)"
