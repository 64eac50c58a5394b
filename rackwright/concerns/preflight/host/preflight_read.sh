# What a machine is and has, as far as preflight judges it and no other concern reads it.
# Parameters: paths (folders whose file systems matter), ports, endpoints, state, urls (NAME=URL), proxies.
# A process chooses its own name, which may hold line breaks.
named() { tr -d '\n' <"/proc/$1/comm" 2>/dev/null | tr -c '[:graph:]' _; }
printf '%s\n' "architecture=$(uname -m)"
printf '%s\n' "kernel=$(uname -r)"
printf '%s\n' "init=$(cat /proc/1/comm)"
printf '%s\n' "uid=$(id -u)"
sed -n 's/^\(MemTotal\|MemAvailable\|SwapTotal\): *\([0-9]*\) kB/\1=\2/p' /proc/meminfo
if [ -e /run/systemd/timesync/synchronized ]; then echo synchronized=yes
elif have timedatectl; then printf '%s\n' "synchronized=$(timeout 2 timedatectl show --property=NTPSynchronized --value 2>/dev/null)"; fi
for unit in nvidia-fabricmanager.service; do
  systemctl show "$unit" --property=LoadState,ActiveState | sed 's/^/fabric./'
done
have nv-fabricmanager && printf '%s\n' "fabric.version=$(timeout 5 nv-fabricmanager --version 2>/dev/null | tr -dc '0-9.:' | sed 's/.*://')"
show /etc/nvidia-container-runtime/config.toml
have nvidia-ctk && printf '%s\n' "toolkit=$(timeout 5 nvidia-ctk --version 2>/dev/null | sed -n 's/.*version \([0-9.]*\).*/\1/p' | head -n 1)"
who=$(find /proc/[0-9]*/fd \( -lname /var/lib/dpkg/lock-frontend -o -lname /var/lib/dpkg/lock \) 2>/dev/null | head -n 1)
if [ -n "$who" ]; then
  pid=${who#/proc/}; pid=${pid%%/*}
  printf '%s\n' "locked=$pid ($(named "$pid"))"
fi
root=$(sed -n 's/.*"data-root"[: ]*"\([^"]*\)".*/\1/p' /etc/docker/daemon.json 2>/dev/null)
for path in $paths "${root:-/var/lib/docker}" /var/lib/containerd; do
  there=$path
  while [ ! -e "$there" ]; do there=${there%/*}; [ -n "$there" ] || there=/; done
  timeout 5 df -k --output=avail,iavail,fstype,source,target "$there" 2>/dev/null | {
    read -r _ && read -r avail inodes type source target &&
      printf '%s\n' "disk $path $avail $inodes $type $source $target"
  }
done
daemon=$(systemctl show docker.service --property=MainPID --value 2>/dev/null)
if [ "${daemon:-0}" != 0 ] && [ -r "/proc/$daemon/limits" ]; then
  sed -n 's/^Max locked memory  *[^ ]* *\([^ ]*\).*/memlock=\1/p; s/^Max open files  *[^ ]* *\([^ ]*\).*/nofile=\1/p' "/proc/$daemon/limits"
  sed -n 's/^CapEff:[[:space:]]*/capabilities=/p' "/proc/$daemon/status"
fi
containers=
if systemctl is-active --quiet docker.service; then
  containers=$(timeout 5 docker ps --no-trunc --format '{{.ID}} {{.Names}} {{.Ports}}' 2>/dev/null)
fi
have ss || echo ss=missing
for port in $ports; do
  for pid in $(ss -Hltnp "sport = :$port" 2>/dev/null | grep -o 'pid=[0-9]*' | sort -u); do
    pid=${pid#pid=}
    inside=$(sed -n 's/.*\([0-9a-f]\{64\}\).*/\1/p' "/proc/$pid/cgroup" 2>/dev/null | head -n 1)
    name=
    [ -n "$inside" ] && name=$(printf '%s\n' "$containers" | sed -n "s/^$inside \([^ ]*\) .*/\1/p")
    [ -n "$name" ] || name=$(printf '%s\n' "$containers" | sed -n "s/^[^ ]* \([^ ]*\) .*:$port->.*/\1/p" | head -n 1)
    unit=$(sed -n 's,.*/\(rackwright-[^/]*\.service\)$,\1,p' "/proc/$pid/cgroup" 2>/dev/null | head -n 1)
    printf '%s\n' "port $port $pid $(named "$pid") ${name:--} $unit"
  done
done
# A host whose endpoints have all been proven fetches nothing, so nobody needs to be reachable.
new=
for name in $endpoints; do [ -e "$state/endpoints/$name/proven" ] || new=yes; done
[ -n "$new" ] && echo new=yes
if [ -n "$new" ] && have curl; then
  for pair in $proxies; do export "$pair"; done
  echo asked=yes
  for pair in $urls; do
    ( said=$(curl --silent --head --connect-timeout 2 --max-time 2 --output /dev/null --write-out '%{http_code}' "${pair#*=}" 2>/dev/null)
      printf '%s\n' "reach ${pair%%=*} $? $said ${pair#*=}" ) &
  done
  wait
fi
exit 0
