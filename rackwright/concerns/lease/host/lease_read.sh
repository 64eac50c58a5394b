# Print the last number given away, the lease, whoever holds it, and the host's clock. Parameters: lease fence.
printf '%s\n' "fence=$(cat "$fence" 2>/dev/null)"
[ -f "$lease" ] && printf '%s\n' "lease=$(base64 -w0 <"$lease" 2>/dev/null)"
read -r uptime _ </proc/uptime
printf '%s\n' "uptime=${uptime%%.*}"
