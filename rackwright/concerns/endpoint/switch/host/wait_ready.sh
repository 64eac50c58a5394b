# Wait until an endpoint's unit is active, which means that /health answered 200; tell at once when it died.
# Parameters: unit load_timeout.
# Together with --since, journalctl's own --lines would count from the beginning.
last_lines() { journalctl --unit "$unit" --since "$since" --no-pager --output cat 2>/dev/null | tail -n "$1" | cut -c1-"$2"; }
# Before it starts a container, the unit removes one of that name; docker says that there is none, which looks like a fault.
news() {
  said=$(last_lines 1 100)
  case $said in *"No such container"*) said="its container starts" ;; esac
  printf '%s' "$said"
}
give_up() {
  # What a dying server said last reaches the journal a little after its end.
  sleep 1
  journalctl --sync 2>/dev/null
  printf '%s\n' "$1" >"${reason:-/dev/null}"
  printf 'start\n' >"${cause:-/dev/null}"
  printf '%s\n' "$1; its last lines:"
  last_lines 30 300
  exit 1
}
: "${since:=$(date -d '10 minutes ago' '+%F %T')}"
waited=0
while :; do
  active=$(systemctl show --property=ActiveState --value "$unit")
  sub=$(systemctl show --property=SubState --value "$unit")
  job=$(systemctl show --property=Job --value "$unit")
  case "$active/$sub/${job:-0}" in
    active/running/*) event progress "ready after $waited s"; exit 0 ;;
    deactivating/* | failed/* | activating/auto-restart*)
      if [ "$(systemctl show --property=Result --value "$unit")" = timeout ]; then
        give_up "not ready within its load_timeout"
      fi
      give_up "the server died after $waited s" ;;
    inactive/*/0) give_up "the server ended after $waited s" ;;
  esac
  if [ $waited -ge "$load_timeout" ]; then give_up "not ready after $waited s"; fi
  waited=$((waited + 1))
  sleep 1
  [ $((waited % 5)) = 0 ] && event progress "loading, $waited s: $(news)"
done
