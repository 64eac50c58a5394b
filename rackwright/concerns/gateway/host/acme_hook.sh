# Give HAProxy the answer of a challenge, or take it away; uacme calls it: METHOD TYPE NAME TOKEN ANSWER.
# Parameters: map admin master (sockets) others (addresses of the other gateways) state (folder).
#include take_maps.sh
[ "$2" = http-01 ] || exit 1
method=$1 token=$4 answer=$5
[ -n "$token" ] && [ -n "$answer" ] || exit 1
case $token$answer in *[!A-Za-z0-9._-]*) exit 1 ;; esac
{ grep -v "^$token " "$map"; [ "$method" != begin ] || printf '%s\n' "$token $answer"; } >"$map.new"
mv -f "$map.new" "$map" && take_maps "$admin" "$master" "$map" || { echo "HAProxy does not take $map" >&2; exit 1; }
[ "$method" = begin ] || exit 0
answers() { # address, seconds
  tries=0
  until [ "$(curl --silent --noproxy '*' --max-time 3 "http://$1/.well-known/acme-challenge/$token")" = "$answer" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt "$2" ] || return 1
    sleep 1
  done
}
answers "$local" 5 || { echo "this gateway does not answer at port 80" >&2; exit 1; }
# The authority may come to any gateway: each asks the other for what it does not know. One that is off is waited for once.
for other in $others; do
  [ -e "$state/waited" ] || answers "$other" 60 || : >"$state/waited"
done
exit 0
