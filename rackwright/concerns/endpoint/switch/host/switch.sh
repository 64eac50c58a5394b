# Switch an endpoint to a release that is on the host: point at it and restart. Goes forward and back alike.
# Parameters: unit release home units binding (its text) held (drop-in that keeps the endpoint from starting).
set -e
date '+%F %T.%6N' | durable_file "$home/switched"
# The same by the clock that nobody steps, and whose it is; after a power cut it is another boot's either way.
{ cat /proc/sys/kernel/random/boot_id; cut -d' ' -f1 /proc/uptime; } >"$home/switched-at"
event progress "switching to release ${release##*/}"
printf %s "$binding" | durable_file "$home/binding"
durable_file "$units/$unit" <"$release/$unit"
durable_link "$home/current" "releases/${release##*/}"
rm -f "$held"
rmdir "${held%/*}" 2>/dev/null || true
systemctl enable --quiet --no-reload "$unit"
systemctl daemon-reload
systemctl stop "$unit"
since=$(date '+%F %T.%6N')
systemctl reset-failed "$unit" 2>/dev/null || true
systemctl start --no-block "$unit"
cut -d' ' -f1 /proc/uptime >"$JOB/pointed"
set +e
