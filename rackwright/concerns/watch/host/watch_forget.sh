# An endpoint is no longer watched: its state, its history and the mark of a restart go, and what was sent of it has ended.
# The mark `sick` stays, with which a deploy proves it again. Comes after tell.sh. Parameters: endpoint states acts marks sent (folders).
fired=$(sed -n 's/^fired=//p' "$states/$endpoint" 2>/dev/null)
for event in hang dead would-restart sick; do
  [ "$event" = "$fired" ] || [ -e "$sent/$event-$endpoint" ] || continue
  tell_resolved "$event" "$event-$endpoint" "endpoint $endpoint is no longer watched"
done
rm -f "$states/$endpoint" "$states/$endpoint".* "$acts/acts-$endpoint" "$marks/watch-$endpoint"
