# Read a host's endpoints at little more than the price of a login: files, one systemctl, one curl, no docker.
# Parameters: home images (the recorded digests) units lease docker (its socket) endpoints ("NAME PORT URL" lines of the
# wanted endpoints, the port as four hexadecimal digits), drained (the mark of a drained host), marks (folder), rules (the script that
# puts the firewall rules back) opened (file) left (what the kernel showed of them then) repairs (file) groups (what runs of endpoints of
# several hosts) runs (directives that count in a drop-in for all services) paused (file) runner, timer, watched and states (of the watch), gateway (the URL that it answers on this host) and gateway_unit, address (the gateways' common one) and certificate (its PEM). Prints "KEY VALUE" lines, those of an
# endpoint after "endpoint NAME", and "end".
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# systemd opens a unit's drop-ins to say whether it is enabled, and waits for a pipe's writer without a limit.
pipe=$(find /etc/systemd/system /run/systemd/system /usr/local/lib/systemd/system -maxdepth 2 -type p -print -quit 2>/dev/null)
[ -z "$pipe" ] || { printf '%s\n' "pipe $pipe" end; exit 0; }
read -r uptime _ </proc/uptime
printf '%s\n' "uptime ${uptime%%.*}"
[ -f "$lease" ] && while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "lease $line"; done <"$lease"
[ -z "$gateway" ] || printf '%s\n' "gateway $(systemctl is-active "$gateway_unit") $(curl --silent --insecure --noproxy '*' --max-time 2 \
  --output /dev/null --write-out '%{http_code}' "$gateway")"
[ -z "$address" ] || [ -z "$(ip -4 -o address show to "$address/32" 2>/dev/null)" ] || echo 'has_address yes'
ends=
[ -z "$certificate" ] || ends=$(openssl x509 -noout -enddate -in "$certificate" 2>/dev/null)
[ -z "$ends" ] || printf '%s\n' "certificate $(date -d "${ends#*=}" +%s)"
[ ! -f "$drained" ] || { echo 'drained mark=1'; head -c 4096 "$drained" | sed 's/^/drained /'; echo; }
[ ! -f "$paused" ] || head -c 2048 "$paused" | sed 's/^/paused /'
for mark in "$marks"/*; do
  [ -f "$mark" ] || continue
  printf '%s\n' "mark_name ${mark##*/}" "mark_text $(head -c 4096 "$mark" | base64 -w0)"
  job=$(sed -n 's/^job=//p' "$mark" | head -n 1 | tr -cd 'A-Za-z0-9._-')
  [ -z "$job" ] || ! systemctl is-active --quiet "rackwright-job-$job.service" || printf '%s\n' "at_work $job"
done
for pin in "$images"/*; do line=; [ ! -f "$pin" ] || read -r line <"$pin"; [ -z "$line" ] || printf '%s\n' "pin $line"; done
sed -n 's/^Model:[[:space:]]*/model /p; s/^GPU UUID:[[:space:]]*/uuid /p' /proc/driver/nvidia/gpus/*/information 2>/dev/null

dropping() {
  if [ -f "$left/iptables.dropping" ]; then # of an earlier version, where nft was missing
    [ "$(iptables-save -t mangle 2>/dev/null | grep -e '^-A .*RACKWRIGHT')" = "$(cat "$left/iptables.dropping")" ] && return
  fi
  [ -f "$left/nft.dropping" ] && [ "$(nft -s list table inet rackwright 2>/dev/null)" = "$(cat "$left/nft.dropping")" ]
}
if [ -f "$rules" ]; then
  if dropping; then echo 'closed yes'; else echo 'closed no'; fi
fi
if [ -f "$rules" ] && grep -qx direct=closed "$rules"; then
  until=$(head -n 1 "$opened" 2>/dev/null | tr -cd 0-9)
  echo "direct $((${until:-0} > ${uptime%%.*} ? until - ${uptime%%.*} : 0))"
fi
# The watch: its timer's link, and how long ago its newest look was; in a pause it looks at no engine.
if [ -f "$runner" ]; then
  [ -L "$units/timers.target.wants/$timer" ] || echo 'watch disabled'
  newest=
  for state in "$states"/*; do
    [ -f "$watched/${state##*/}" ] && [ -f "$state" ] || continue
    while IFS== read -r key value; do
      [ "$key" != looked ] || case $value in '' | *[!0-9]*) ;; *) [ "$value" -le "${newest:-0}" ] || newest=$value ;; esac
    done <"$state"
  done
  [ -z "$newest" ] || [ -f "$paused" ] || [ $((${uptime%%.*} - newest)) -le 300 ] || echo "watch $((${uptime%%.*} - newest))"
fi
# What `systemctl is-enabled` reads, without a process.
for own in "$home"/*/current; do
  [ -L "$own" ] || continue
  [ -f "$units/rackwright-boot.service" ] && [ -L "$units/multi-user.target.wants/rackwright-boot.service" ] || echo 'boot no'
  break
done
[ ! -f "$repairs" ] || awk -v now="$(date +%s)" '$1 >= now - 3600 && $1 <= now { n++; $1 = ""; text = $0 } END { if (n) print "repairs " n text }' "$repairs"

# dockerd itself is asked only where something seems to be gone: with its other backend nothing of iptables is needed.
lacking() { docker_lacks "$1" "$dockerd"; }
dockerd=$(cat /run/docker.pid 2>/dev/null)
if [ -n "$dockerd" ] && [ -n "$(lacking '{}')" ]; then
  lacking "$(curl --silent --fail --max-time 10 --unix-socket "$docker" http://docker/info || echo '"FirewallBackend":{"Driver":"unknown"')" |
    sed 's/^/lacks /'
  ! docker_unknown_to_firewalld 5 || echo 'rejects yes'
fi
[ -z "$dockerd" ] || docker_asks_firewalld 5 | sed 's/^/waits /'

# `cd -P` reads a link without a process of its own.
pointer() { cd -P "$home/$name/$1" 2>/dev/null && printf '%s\n' "$1 ${PWD##*/}"; }
label() { value=${said#*'"rackwright.'"$1"'":"'}; printf %s "${value%%'"'*}"; }
others_at() { # sets and prints `taken`: who listens at the port of a URL beside the container `id`, whose network is `network`
  port=${1##*:} port=${port%%/*} listener_name=rackwright-$name
  taken=$(listener_others "$id" "$network")
  # Another endpoint may be where this one was.
  case $taken in '' | *'; container rackwright-'*) taken= ;; *) printf '%s\n' "taken port $port is taken by ${taken#; }" ;; esac
}
identify() { # sets `id` and `network` of the container whose JSON is in `said`, and `pid`
  id=none network=shared pid=${said#*'"Pid":'}
  pid=${pid%%[!0-9]*}
  case $said in '{"Id":"'*'"Running":true'*) id=${said#*'"Id":"'} id=${id%%'"'*} ;; esac
  [ "$id" = none ] || [ "/proc/$pid/ns/net" -ef /proc/self/ns/net ] || network=own
}
ask() { # container of NAME, then /health: one process for both; a busy server may answer late
  said=$(curl --silent --max-time 5 --unix-socket "$docker" "http://docker/containers/rackwright-$name/json" \
    --next --silent --noproxy '*' --max-time 15 --output /dev/null --write-out '\n%{http_code}' "$1")
  health=${said##*
}
  # A member that is not the head answers no requests; its unit is active while its head says that all serve.
  if [ -f "$groups/$name/ready" ] && [ ! -f "$groups/$name/state" ]; then health=200; fi
  identify
  others_at "$1"
  # What another process may have answered says nothing of it.
  [ -z "$taken" ] || [ "$network" = own ] || health=0
  printf '%s\n' "health $health"
  case $said in *'"Running":true'*) ;; *) return ;; esac
  case $said in *'"rackwright.release":"'*) ;; *) return ;; esac
  printf '%s\n' "running $(label release) $(label serving) $(label binding)"
  # Connections to a published port end in the container's own network.
  awk -v port=":$2" 'substr($2, length($2) - 4) == port && $4 == "01" { n++ } END { print "connections " n + 0 }' \
    "/proc/$pid/net/tcp" "/proc/$pid/net/tcp6" 2>/dev/null
}

every_service() { # paths, and what follows them; prints the drop-ins for all services that change how one runs
  set -f
  # shellcheck disable=SC2086 - a list of paths
  set -- ${1%%
*}
  set +f
  for path in "$@"; do
    case $path in
    /usr/lib/* | /lib/*) ;;
    */service.d/*.conf)
      grep -Eq "^[[:space:]]*($runs)[[:space:]]*=" "$path" 2>/dev/null && printf '%s\n' "every_service $path" ;;
    esac
  done
}

others() { # on the host, and not, or no longer, in the settings
  for own in "$home"/*/; do
    own=${own%/} && name=${own##*/}
    case "
$endpoints" in *"
$name "*) continue ;; esac
    [ -f "$own/current/health-url" ] && [ ! -f "$own/replaced-by" ] || continue
    url=; read -r url <"$own/current/health-url"; [ -n "$url" ] || continue
    port=${url##*:}
    printf '%s %04X %s\n' "$name" "${port%%/*}" "$url"
  done
}

{ printf '%s\n' "$endpoints"; others; } | while read -r name port url; do
  unit=rackwright-$name.service
  [ -d "$home/$name" ] || [ -f "$units/$unit" ] || continue
  printf '%s\n' "endpoint $name"
  state=$(systemctl show --property=ActiveState,SubState,Result,NeedDaemonReload,UnitFileState,ActiveEnterTimestampMonotonic,MainPID,DropInPaths "$unit")
  printf '%s\n' "$state"
  case $state in *DropInPaths=*/service.d/*) every_service "${state#*DropInPaths=}" ;; esac
  [ -e "/run/systemd/system/$unit.d/rackwright-held.conf" ] && echo 'held yes'
  [ -f "$home/$name/last-switch" ] && while read -r line || [ -n "$line" ]; do printf '%s\n' "last_${line%%=*} ${line#*=}"; done <"$home/$name/last-switch"
  pointer proven
  if pointer current; then
    [ -f "$units/$unit" ] && if cmp -s "$units/$unit" "$unit"; then echo 'unit same'; else echo 'unit other'; fi
    sha256sum --check --strict --status SHA256SUMS 2>/dev/null && echo 'files whole'
    started=${state#*MainPID=} started=${started%%[!0-9]*}
    if [ "${started:-0}" != 0 ] && [ -f "$unit" ] && [ -r "/proc/$started/cmdline" ]; then
      printf '%s\n' "release_unit $(base64 -w0 <"$unit")" "started $(tr '\000' '\n' <"/proc/$started/cmdline" | base64 -w0)"
    fi
    [ -f health-url ] && read -r url <health-url
    printf '%s\n' "spec $(base64 -w0 <spec.json)"
  fi
  [ ! -f "$states/$name" ] || while IFS='=' read -r key value; do
    case $key in state | since | looked | signs | would) printf '%.500s\n' "watch_$key $value" ;; esac
  done <"$states/$name"
  [ -f "$home/$name/binding" ] && printf '%s\n' "binding $(base64 -w0 <"$home/$name/binding")"
  [ -f "$home/$name/proven-binding" ] && printf '%s\n' "bound $(base64 -w0 <"$home/$name/proven-binding")"
  case $state in
    *ActiveState=activating*) # a start waits until it alone has the port
      said=$(curl --silent --max-time 5 --unix-socket "$docker" "http://docker/containers/rackwright-$name/json")
      identify
      others_at "$url" ;;
    *ActiveState=failed* | *ActiveState=inactive*) id=none network=shared; others_at "$url" ;;
  esac
  case $state in
    *ActiveState=active*) ask "$url" "$port" ;;
    *ActiveState=failed*)
      died=$(timeout 10 journalctl --unit "$unit" --no-pager --output cat --lines 2000 2>/dev/null | cut -c1-2000 | own_error)
      [ -z "$died" ] || printf '%s\n' "died ${died#* }" | cut -c1-400 ;;
  esac
done
echo end
exit 0
