# Take an endpoint's clients away: by the site's hook, and by the word of this host, which each gateway has heard then; wait until no request is open.
# The mark that changes the word is there already. Parameters: endpoint unit container port drain_timeout hook (a script) notes askers_limit (seconds).
# Says an event `drained ENDPOINT OPEN SECONDS GATEWAY...`: requests that are open when it ends, and the gateways that were not waited for.
systemctl is-active --quiet "$unit" || exit 0
#include askers.sh
#include open_requests.sh
asker_clock
since=$asker_now
sh -c "$hook" || exit 1
askers_await "$since" out "$askers_limit"
look() {
  pid=$(timeout 20 docker inspect --format '{{.State.Pid}}' "$container" 2>&1) ||
    # A dockerd that does not answer says nothing of clients: they may be there until the time is over.
    { case $pid in *'o such '*) echo 0 0 ;; *) echo unknown unknown ;; esac; return; }
  [ "$pid" != 0 ] || { echo 0 0; return; }
  found=$(timeout 20 nsenter --target "$pid" --net ss -tinHO state established "sport = :$port") || { echo unknown unknown; return; }
  printf '%s' "${found:+$found$nl}" | awk -v looks="$looks" -v connections="$connections" "$requests_of"
}
nl='
'
open=0 connections=$JOB/connections-$unit looks=0 quiet_looks=0 waited=0
rm -f "$connections"
while systemctl is-active --quiet "$unit"; do
  counts=$(look)
  looks=$((looks + 1))
  open=${counts%% *} all=${counts#* }
  all=${all%% *}
  [ "$all" != 0 ] || break
  # A request may begin between two looks, and a slow answer has its next part after them.
  if [ "$open" = 0 ]; then quiet_looks=$((quiet_looks + 1)); else quiet_looks=0; fi
  [ $quiet_looks -lt 3 ] && [ $waited -lt "$drain_timeout" ] || break
  [ $((waited % 5)) = 0 ] && event progress "draining: requests open: $open, connections: $all, waiting up to $drain_timeout s"
  waited=$((waited + 1))
  sleep 1
done
asker_clock
event drained "$endpoint ${open:-0} $(((asker_now - since) / 100))$askers_gone"
exit 0
