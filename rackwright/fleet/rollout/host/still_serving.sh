# Print in one line: the unit's state, its restarts by itself, the release that runs, and what /health answers.
# Parameters: unit container url. Stands behind listener.sh: what another process answers at that port says nothing.
taken=$(listener_stranger)
[ -z "$taken" ] || { printf 'stranger: %s\n' "$taken"; exit 0; }
state=$(systemctl is-active "$unit")
restarts=$(systemctl show --property=NRestarts --value "$unit")
label='{{if .State.Running}}{{index .Config.Labels "rackwright.release"}}{{end}}'
runs=$(timeout 60 docker inspect --format "$label" "$container" 2>/dev/null)
health=$(curl --silent --noproxy '*' --max-time 20 --output /dev/null --write-out '%{http_code}' "$url")
printf '%s\n' "$state ${restarts:--} ${runs:--} $health"
