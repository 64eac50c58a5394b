# What `rackwright watch` does on a host. Parameters: verb (show, pause, resume) seconds who reason; paused (file) watched
# (folder of what is watched) states (folder of what the looks found) acts (folder of what was done) timer.
read -r now _ </proc/uptime
now=${now%%.*}
until=$(head -n 1 "$paused" 2>/dev/null | tr -cd 0-9)
remaining=$((${until:-0} - now))
value() { sed -n "s/^$1=//p" "$2" 2>/dev/null | head -n 1 | cut -c1-300; }
is_watched() { for file in "$watched"/*; do [ ! -f "$file" ] || return 0; done; return 1; }
timer_runs() {
  systemctl is-active --quiet "$timer" || { printf '%s\n' "$timer does not run, so nothing is looked at; next: deploy again" >&2; return 1; }
}
case $verb in
pause)
  mkdir -p -m 0700 "${paused%/*}" || exit 1
  printf '%s\n' "$((now + seconds))" "who=$who" "since=$(date -u '+%F %T')" "reason=$reason" >"$paused.new" && mv "$paused.new" "$paused" || exit 1
  printf '%s\n' "no engine is looked at or restarted by the watch for $seconds s; a reboot ends the pause, too"
  is_watched || echo "no deploy has set up a watch of engines here yet"
  ;;
resume)
  rm -f "$paused" || exit 1
  is_watched || { echo "no deploy has set up a watch of engines here"; exit 0; }
  timer_runs || exit 1
  echo "engines are looked at again"
  ;;
show)
  [ "$remaining" -le 0 ] || printf '%s\n' "paused for another $remaining s by $(value who "$paused") since $(value since "$paused") UTC: $(value reason "$paused")"
  is_watched || { echo "no deploy has set up a watch of engines here"; exit 0; }
  for file in "$watched"/*; do
    name=${file##*/} state=
    [ -f "$file" ] || continue
    [ ! -f "$states/$name" ] || state=$(value state "$states/$name")
    looked=$(value looked "$states/$name" | tr -cd 0-9.)
    looked=${looked%%.*}
    would=$(value would "$states/$name")
    printf '%s\n' "$name: ${state:-not looked at yet}${looked:+, looked at $((now - looked)) s ago}${would:+, would have done: $would}; act: $(value act "$file")"
    signs=$(value signs "$states/$name")
    [ -z "$signs" ] || printf '%s\n' "$name: $signs"
    [ ! -f "$acts/acts-$name" ] || tail -n 5 "$acts/acts-$name" | cut -c1-400 | while read -r when what; do
      case $when in '' | *[!0-9]*) continue ;; esac
      printf '%s\n' "$name: $(date -u -d "@$when" '+%F %T') UTC $what"
    done
  done
  timer_runs || exit 1
  ;;
esac
