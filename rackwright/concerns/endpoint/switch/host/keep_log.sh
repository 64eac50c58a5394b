# Keep the journal of a failed try on the host, and of what ran before it. Parameters: unit home label part.
# kept_in, of the environment: the folder in `home`, if not `failed`; a bench's trials have their own, so that they push out no failure's.
# part: "switch" keeps what was said since the last switch apart from what was said before, "all" does not.
# What an engine says may hold its users' words: root's alone.
before=$(umask)
umask 077
logs=$home/${kept_in:-failed}
mkdir -p "$logs" && chmod 0700 "$logs"
log="$logs/$(date +%Y%m%dT%H%M%S)-$label"
switched=$(cat "$home/switched" 2>/dev/null)
if [ "$part" = switch ] && [ -n "$switched" ]; then
  journalctl --unit "$unit" --no-pager --since "$switched" | tail -n 2000 >"$log.log"
  journalctl --unit "$unit" --no-pager --until "$switched" | tail -n 500 >"$log.before.log"
else
  journalctl --unit "$unit" --no-pager --lines 2000 >"$log.log"
fi
umask "$before"
event kept "$log.log"
ls -1 "$logs" | sort -r | tail -n +21 | while read -r old; do rm -f "$logs/$old"; done
