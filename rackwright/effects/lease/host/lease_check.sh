# Renew this run's lease, or refuse to go on when it is not this run's any more. Parameters: lease id ttl lost.
umask 077
if [ -f "$lease" ] && exec 9>>"$lease.lock" && flock --timeout 30 9 && grep -qsxF "id=$id" "$lease"; then
  read -r now _ </proc/uptime
  sed "s/^expires=.*/expires=$((${now%%.*} + ttl))/" "$lease" >"$lease.new" && mv -f "$lease.new" "$lease" && exit 0
fi
printf '%s\n' "$lost" >&2
[ -f "$lease" ] && printf '%s\n' "lease=$(base64 -w0 <"$lease")" >&2
read -r now _ </proc/uptime
printf '%s\n' "uptime=${now%%.*}" >&2
exit 76
