# Written by Rackwright. Restart an endpoint that hangs or is dead, once, and prove it, as watch.act says.
# Argument: the endpoint, and `after` for what follows an act that was cut. It comes after durable.sh, mark.sh and tell.sh.
# Ends 0 when it is proven or there is nothing to do, 3 when the restart did not help, 1 when it was left alone.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH LC_ALL=C
endpoint=$1
case $endpoint in '' | *[!a-z0-9_-]*) exit 1 ;; esac
state=/var/lib/rackwright run=/run/rackwright etc=/etc/rackwright notes=/run/rackwright-word
home=$state/endpoints/$endpoint unit=rackwright-$endpoint.service container=rackwright-$endpoint
watched=$etc/watched/$endpoint look=$run/watch/$endpoint own=watch-$endpoint
JOB=$run/act/$endpoint
export JOB reason="$JOB/reason" cause="$JOB/cause"
umask 077
value() { sed -n "s/^$2=//p" "$1" 2>/dev/null | head -n 1; }
number() { # file, key, what counts without it
  n=$(value "$1" "$2" | cut -d. -f1 | tr -cd 0-9 | cut -c1-9)
  echo "${n:-$3}"
}
uptime() { read -r up _ </proc/uptime; up=${up%%.*}; } # sets `up`
say() { printf '%s\n' "$*"; }
#include act_history.sh
#include act_peers.sh
#include act_restart.sh
#include act_main.sh
