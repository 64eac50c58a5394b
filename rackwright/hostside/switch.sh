# Switch an endpoint to a release that is on the host: point at it and restart. Goes forward and back alike.
# Parameters: unit release home units binding (its text).
set -e
date '+%F %T.%6N' >"$home/switched.new"
mv -f "$home/switched.new" "$home/switched"
event progress "switching to release ${release##*/}"
printf %s "$binding" >"$home/binding.new"
mv -f "$home/binding.new" "$home/binding"
install -m 0644 "$release/$unit" "$units/.$unit.new"
mv -f "$units/.$unit.new" "$units/$unit"
ln -sfn "releases/${release##*/}" "$home/current.new"
mv -fT "$home/current.new" "$home/current"
systemctl daemon-reload
systemctl enable --quiet "$unit"
systemctl stop "$unit"
since=$(date '+%F %T.%6N')
systemctl reset-failed "$unit" 2>/dev/null || true
systemctl start --no-block "$unit"
cut -d' ' -f1 /proc/uptime >"$JOB/pointed"
set +e
