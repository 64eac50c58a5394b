# Connect to a port; what is answered there does not matter. Parameters: address (as in a URL) port seconds.
# Prints curl's exit status, its seconds until the connection (0.000000: none), and its words.
export LC_ALL=C
curl --silent --show-error --stderr - --noproxy '*' --connect-timeout "$seconds" --max-time "$((seconds + 2))" \
  --output /dev/null --write-out '\nconnected=%{time_connect}\n' "http://$address:$port/health"
printf 'status=%s\n' "$?"
exit 0
