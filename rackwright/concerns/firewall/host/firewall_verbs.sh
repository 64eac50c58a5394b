# What `rackwright firewall` does on a host. Parameters: verb (show, pause, resume, open, close) seconds; rules (the script
# that puts them back) paused (file) timer repairs (file) opened (file).
[ -f "$rules" ] || { echo "no deploy has set firewall rules here"; exit 0; }
read -r now _ </proc/uptime
now=${now%%.*}
until=$(head -n 1 "$paused" 2>/dev/null | tr -cd 0-9)
left=$((${until:-0} - now))
until=$(head -n 1 "$opened" 2>/dev/null | tr -cd 0-9)
open_left=$((${until:-0} - now))
closer=rackwright-firewall-close
closes() { grep -qx direct=closed "$rules"; }
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
open)
  closes || { echo "the endpoints' ports are not closed to direct clients here, and nothing was done"; exit 0; }
  mkdir -p -m 0700 "${opened%/*}" && printf '%s\n' "$((now + seconds))" >"$opened.new" && mv "$opened.new" "$opened" || exit 1
  systemctl stop "$closer.timer" 2>/dev/null
  # The timer that looks after the rules would close them within 30 s of the end, unless it is paused.
  systemd-run --quiet --collect --unit="$closer" --on-active="$((seconds + 1))" --timer-property=AccuracySec=1s /bin/sh "$rules" ||
    { rm -f "$opened"; exit 1; }
  sh "$rules" || exit 1
  printf '%s\n' "the endpoints' ports let in whom allow_from names, for $seconds s; then this host closes them again"
  ;;
close)
  [ "$open_left" -gt 0 ] || { echo "nothing was opened for a while here"; exit 0; }
  rm -f "$opened" && systemctl stop "$closer.timer" && sh "$rules" || exit 1
  echo "the endpoints' ports let in the gateways alone again"
  ;;
show)
  status=0
  if found=$(sh "$rules" check); then echo "the rules stand as they were put"; else printf '%s\n' "$found"; status=1; fi
  if [ "$open_left" -gt 0 ] && closes; then printf '%s\n' "the ports are open to direct clients for another $open_left s"
  elif closes; then echo "the ports let in the gateways alone (gateway.close_direct)"; fi
  [ "$left" -le 0 ] || printf '%s\n' "nothing is put back for another $left s"
  [ ! -f "$repairs" ] || tail -n 5 "$repairs" | while read -r when text || [ -n "$when" ]; do
    printf 'put back %s: %s\n' "$(date -d "@$when" '+%F %T')" "$text"
  done
  exit "$status"
  ;;
esac
