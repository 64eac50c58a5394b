# Let the site take an endpoint out of its balancer, then wait until no request is open on it.
# Parameters: unit container port drain_timeout hook (a script).
systemctl is-active --quiet "$unit" || exit 0
sh -c "$hook" || exit 1
# A connection has an open request when its last byte came from the client, as during a prefill, or when an answer that
# needs more than one look sent its last byte less than 20 s ago. An idle keep-alive and a monitor's scrape have none.
# Prints how many requests and connections are open; then, for the next look, a row a connection: client, bytes sent,
# bytes received, and 1 for an answer in parts. ss leaves out what is 0 (man 8 ss; struct tcp_info).
requests_of='
  BEGIN { for (rows = split(ENVIRON["connections"], row, "\n"); rows; rows--) {
    if (split(row[rows], f, " ")) { sent[f[1]] = f[2]; received[f[1]] = f[3]; parts[f[1]] = f[4] } } }
  function of(name) { return match($0, " " name ":[0-9]+") ? substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 2) + 0 : 0 }
  { client = $4; s = of("bytes_sent"); r = of("bytes_received"); quiet = of("lastsnd"); recent = quiet < 20000
    p = client in sent ? parts[client] : looks == 0 && r && recent
    if (client in sent && r > received[client]) p = 0; else if (client in sent && s > sent[client]) p = 1
    open += r && (!s || of("lastrcv") <= quiet || p && recent)
    all++; kept = kept "\n" client " " s " " r " " p + 0 }
  END { print open + 0, all + 0 kept }'
look() {
  pid=$(timeout 20 docker inspect --format '{{.State.Pid}}' "$container" 2>&1) ||
    # A dockerd that does not answer says nothing of clients: they may be there until the time is over.
    { case $pid in *'o such '*) echo 0 0 ;; *) echo unknown unknown ;; esac; return; }
  [ "$pid" != 0 ] || { echo 0 0; return; }
  found=$(timeout 20 nsenter --target "$pid" --net ss -tinHO state established "sport = :$port") || { echo unknown unknown; return; }
  printf %s "${found:+$found$nl}" | connections=$connections awk -v looks="$looks" "$requests_of"
}
nl='
'
connections= looks=0 quiet_looks=0 waited=0
while systemctl is-active --quiet "$unit"; do
  found=$(look)
  counts=${found%%"$nl"*}
  connections=${found#"$counts"}
  looks=$((looks + 1))
  open=${counts% *} all=${counts#* }
  [ "$all" != 0 ] || break
  # A request may begin between two looks, and a slow answer has its next part after them.
  if [ "$open" = 0 ]; then quiet_looks=$((quiet_looks + 1)); else quiet_looks=0; fi
  [ $quiet_looks -lt 3 ] && [ $waited -lt "$drain_timeout" ] || break
  [ $((waited % 5)) = 0 ] && event progress "draining: requests open: $open, connections: $all, waiting up to $drain_timeout s"
  waited=$((waited + 1))
  sleep 1
done
exit 0
