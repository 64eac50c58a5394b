# What `rackwright firewall` does on a host. Parameters: verb (show, pause, resume) seconds; rules (the script that puts
# them back) paused (file) timer repairs (file).
[ -f "$rules" ] || { echo "no deploy has set firewall rules here"; exit 0; }
read -r now _ </proc/uptime
now=${now%%.*}
until=$(head -n 1 "$paused" 2>/dev/null | tr -cd 0-9)
left=$((${until:-0} - now))
case $verb in
pause)
  mkdir -p -m 0700 "${paused%/*}" && printf '%s\n' "$((now + seconds))" >"$paused.new" && mv "$paused.new" "$paused" || exit 1
  printf '%s\n' "nothing is put back for $seconds s; an endpoint that starts restores the drops anyway"
  ;;
resume)
  rm -f "$paused" || exit 1
  systemctl is-active --quiet "$timer" || { printf '%s\n' "$timer does not run; next: deploy again" >&2; exit 1; }
  echo "the rules are looked after again"
  ;;
show)
  status=0
  if found=$(sh "$rules" check); then echo "the rules stand as they were put"; else printf '%s\n' "$found"; status=1; fi
  [ "$left" -le 0 ] || printf '%s\n' "nothing is put back for another $left s"
  [ ! -f "$repairs" ] || tail -n 5 "$repairs" | while read -r when text || [ -n "$when" ]; do
    printf 'put back %s: %s\n' "$(date -d "@$when" '+%F %T')" "$text"
  done
  exit "$status"
  ;;
esac
