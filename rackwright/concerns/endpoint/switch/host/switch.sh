# Switch an endpoint to a release that is on the host: point at it and restart. Goes forward and back alike.
# Parameters: unit release home units binding (its text) held (drop-in that keeps the endpoint from starting).
set -e
date '+%F %T.%6N' | durable_file "$home/switched"
event progress "switching to release ${release##*/}"
printf %s "$binding" | durable_file "$home/binding"
durable_file "$units/$unit" <"$release/$unit"
durable_link "$home/current" "releases/${release##*/}"
rm -f "$held"
systemctl daemon-reload
systemctl enable --quiet "$unit"
systemctl stop "$unit"
since=$(date '+%F %T.%6N')
systemctl reset-failed "$unit" 2>/dev/null || true
systemctl start --no-block "$unit"
cut -d' ' -f1 /proc/uptime >"$JOB/pointed"
set +e
