# Wait until the gateway answers over a new connection; a host that has none yet is not asked. Parameters: url unit units seconds.
[ -e "$units/$unit" ] || exit 0
waited=0
while [ "$waited" -lt "$seconds" ]; do
  curl --silent --insecure --noproxy '*' --max-time 2 --output /dev/null --dump-header - "$url" 2>/dev/null |
    grep -qi '^x-gateway-revision:' && exit 0
  sleep 1
  waited=$((waited + 1))
done
systemctl show --property=ActiveState,SubState,Result "$unit" | tr '\n' ' ' >&2
exit 1
