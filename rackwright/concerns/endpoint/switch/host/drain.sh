# Let the site take an endpoint out of its balancer, then wait until no client is connected to it.
# Parameters: unit container port_hex drain_timeout hook (a script).
systemctl is-active --quiet "$unit" || exit 0
sh -c "$hook" || exit 1
connections() {
  pid=$(timeout 20 docker inspect --format '{{.State.Pid}}' "$container" 2>&1) ||
    # A dockerd that does not answer says nothing of clients: they may be there until the time is over.
    { case $pid in *'o such '*) echo 0 ;; *) echo unknown ;; esac; return; }
  cat "/proc/$pid/net/tcp" "/proc/$pid/net/tcp6" 2>/dev/null |
    awk -v port=":$port_hex" 'substr($2, length($2) - 4) == port && $4 == "01" { n++ } END { print n + 0 }'
}
waited=0
while systemctl is-active --quiet "$unit" && open=$(connections) && [ "$open" != 0 ] && [ $waited -lt "$drain_timeout" ]; do
  [ $((waited % 5)) = 0 ] && event progress "draining: $open connections open, waiting up to $drain_timeout s"
  waited=$((waited + 1))
  sleep 1
done
exit 0
