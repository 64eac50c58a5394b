# Print "other NONCE SECONDS LIMIT" when a job of this name runs with another digest: since when, and after how long systemd
# ends it. Parameters: unit folder digest.
[ -d "$folder" ] && systemctl is-active --quiet "$unit" || exit 0
[ "$(cat "$folder/digest")" != "$digest" ] || exit 0
read -r now _ </proc/uptime
read -r began <"$folder/began" || began=$now
read -r nonce <"$folder/nonce" || exit 0
printf 'other %s %s %s\n' "$nonce" $((${now%%.*} - ${began%%.*})) "$(systemctl show --property=RuntimeMaxUSec --value "$unit")"
