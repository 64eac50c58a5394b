# Renew this run's lease, or refuse to continue when it is no longer this run's. Parameters: lease id ttl lost.
umask 077
if [ -f "$lease" ] && exec 9>>"$lease.lock" && flock --timeout 30 9; then
  ours=no expires=0 rest=
  while IFS= read -r line; do
    case $line in "id=$id") ours=yes ;; expires=*) expires=${line#*=}; continue ;; esac
    rest="$rest$line
"
  done <"$lease"
  case $expires in '' | *[!0-9]*) expires=0 ;; esac
  read -r now _ </proc/uptime
  now=${now%%.*}
  # Commands come in bursts, and each stands behind this check: one that was renewed just now need not be written again.
  [ $ours = yes ] && [ "$expires" -gt $((now + ttl - 10)) ] && exit 0
  [ $ours = yes ] && printf '%sexpires=%s\n' "$rest" $((now + ttl)) >"$lease.new" && mv -f "$lease.new" "$lease" && exit 0
fi
printf '%s\n' "$lost" >&2
[ -f "$lease" ] && printf '%s\n' "lease=$(base64 -w0 <"$lease")" >&2
read -r now _ </proc/uptime
printf '%s\n' "uptime=${now%%.*}" >&2
exit 76
