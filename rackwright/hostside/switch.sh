# Switch an endpoint to a release that is on the host: drain, point at it, restart. Goes forward and back alike.
# Parameters: unit container release home units port_hex drain_timeout.
connections() {
  pid=$(docker inspect --format '{{.State.Pid}}' "$container" 2>/dev/null) || { echo 0; return; }
  cat "/proc/$pid/net/tcp" "/proc/$pid/net/tcp6" 2>/dev/null |
    awk -v port=":$port_hex" 'substr($2, length($2) - 4) == port && $4 == "01" { n++ } END { print n + 0 }'
}
waited=0
while systemctl is-active --quiet "$unit" && open=$(connections) && [ "$open" -gt 0 ] && [ $waited -lt "$drain_timeout" ]; do
  [ $((waited % 5)) = 0 ] && echo "draining: $open connections open, waiting up to $drain_timeout s"
  waited=$((waited + 1))
  sleep 1
done
set -e
date '+%F %T.%6N' >"$home/switched.new"
mv -f "$home/switched.new" "$home/switched"
echo "switching to release ${release##*/}"
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
set +e
