# What a machine is and has, as far as preflight judges it and no other concern reads it.
# Parameters: paths (folders whose file systems matter), fetched (those of models and encodings), ports, endpoints, state, urls (NAME=URL), proxies.
# shellcheck disable=SC2046 - two words
set -- $(uname -rm)
read -r init </proc/1/comm
printf '%s\n' "architecture=${2:-}" "kernel=${1:-}" "init=$init"
while read -r key _ value _; do case $key in Uid:) printf '%s\n' "uid=$value"; break ;; esac; done </proc/self/status
while read -r key value _; do
  case $key in MemTotal: | MemAvailable: | SwapTotal:) printf '%s\n' "${key%:}=$value" ;; esac
  [ "$key" != SwapTotal: ] || break
done </proc/meminfo
clock() { # as timedatectl tells it, which starts a daemon to ask: the kernel's greatest error of the clock, below 16 s
  case $1 in x86_64) call=159 ;; aarch64) call=171 ;; *) return 1 ;; esac
  have perl && perl -e '$time = "\0" x 256; exit 1 if syscall($ARGV[0], $time) < 0; print unpack("x24q", $time) < 16000000 ? "yes" : "no"' "$call" 2>/dev/null
}
if [ -e /run/systemd/timesync/synchronized ]; then echo synchronized=yes
elif said=$(clock "${2:-}"); then printf '%s\n' "synchronized=$said"
elif have timedatectl; then printf '%s\n' "synchronized=$(timeout 2 timedatectl show --property=NTPSynchronized --value 2>/dev/null)"; fi
if have nv-fabricmanager; then
  said=$(timeout 5 nv-fabricmanager --version 2>/dev/null)
  for word in ${said##*:}; do case $word in [0-9]*.*) printf '%s\n' "fabric.version=$word"; break ;; esac; done
fi
show /etc/nvidia-container-runtime/config.toml
if have nvidia-ctk; then
  said=$(timeout 5 nvidia-ctk --version 2>/dev/null)
  case $said in *'version '*) said=${said#*version }; printf '%s\n' "toolkit=${said%%[!0-9.]*}" ;; esac
fi
# The holder of dpkg's lock has locked some file; the others need not be looked at.
lockers=$(sed -n 's,^[0-9]*: POSIX  *[A-Z]*  *WRITE  *\([0-9]*\) .*,/proc/\1/fd,p' /proc/locks 2>/dev/null)
# shellcheck disable=SC2086 - a list of folders
who=$([ -z "$lockers" ] || find $lockers \( -lname /var/lib/dpkg/lock-frontend -o -lname /var/lib/dpkg/lock \) -print -quit 2>/dev/null)
if [ -n "$who" ]; then
  pid=${who#/proc/}; pid=${pid%%/*}
  named "$pid"; printf '%s\n' "locked=$pid ($name)"
fi
root=
[ ! -f /etc/docker/daemon.json ] || root=$(sed -n 's/.*"data-root"[: ]*"\([^"]*\)".*/\1/p' /etc/docker/daemon.json 2>/dev/null)
own=$paths paths=
for path in $own; do
  if hangs "$path"; then
    printf '%s\n' "hung $path"
    fetched=$(for one in $fetched; do [ "$one" = "$path" ] || printf '%s ' "$one"; done)
  else paths="$paths $path"; fi
done
# Who may rename entries of the folders above what is fetched: those whose owner or mode are not as a system has them.
set --
for path in $fetched; do
  while [ "${path#/}" ]; do
    case " $* " in *" $path "*) ;; *) [ ! -d "$path" ] || set -- "$@" "$path" ;; esac
    path=${path%/*}
  done
done
[ "$#" = 0 ] || stat -L -c '%u %a %U %n' "$@" 2>/dev/null | while read -r uid mode user path; do
  case $uid:$mode in 0:*[2367]? | 0:*[2367]) case $mode in 1??? | 3??? | 5??? | 7???) continue ;; esac ;; 0:*) continue ;; esac
  printf '%s\n' "above $path $user $mode"
done
folders="$paths ${root:-/var/lib/docker} /var/lib/containerd"
space() { timeout 5 df -k --output=avail,iavail,fstype,source,target "$@" 2>/dev/null; }
disks() { # the folders that were asked for, in that order; what df says of each is read
  read -r _
  for path in $1; do
    read -r avail inodes type source target && printf '%s\n' "disk $path $avail $inodes $type $source $target"
  done
}
set --
for path in $folders; do
  while [ ! -e "$path" ]; do path=${path%/*}; [ -n "$path" ] || path=/; done
  set -- "$@" "$path"
done
if rows=$(space "$@"); then printf '%s\n' "$rows" | disks "$folders"
else # one that hangs must not hide the others
  for path in $folders; do
    if rows=$(space "$1"); then printf '%s\n' "$rows" | disks "$path"; fi
    shift
  done
fi
# Of an ordinary file system the kernel says at once whether it takes writes, of root's too.
for path in / /etc /etc/systemd/system /usr /var/lib "$state" "${root:-/var/lib/docker}" /var/lib/containerd; do
  [ ! -e "$path" ] || [ -w "$path" ] || printf '%s\n' "readonly $path"
done
# What is not a file at the path of a unit or a drop-in keeps the unit from being enabled or written. A pipe ends the reading earlier.
find /etc/systemd/system /run/systemd/system /usr/local/lib/systemd/system -maxdepth 2 -path '*/rackwright*' \
  \( -type s -o -type d -name '*.conf' -o -type d -name 'rackwright*.service' -o -name '*.conf' -xtype l \) -printf 'odd %y %p\n' 2>/dev/null
if [ -e /run/ostree-booted ]; then echo immutable=ostree; elif [ -e /etc/NIXOS ]; then echo immutable=NixOS; fi
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo cgroup=v2; else echo cgroup=v1; fi
[ ! -e /snap/docker/current ] || echo snap.docker=yes
for path in /run/user/*/docker.sock; do
  [ ! -S "$path" ] || printf '%s\n' "rootless $(stat -c %U "$path")"
done
daemon=$reading_daemon
if [ "$daemon" != 0 ] && [ -r "/proc/$daemon/limits" ]; then
  sed -n 's/^Max locked memory  *[^ ]* *\([^ ]*\).*/memlock=\1/p; s/^Max open files  *[^ ]* *\([^ ]*\).*/nofile=\1/p
    s/^CapEff:[[:space:]]*/capabilities=/p; /\x00/{s/\x00/ /g; s/^/dockerd=/p}' \
    "/proc/$daemon/limits" "/proc/$daemon/status" "/proc/$daemon/cmdline"
  # A command line ends without a line break, and sed prints none then.
  echo
fi
if ! have ss; then echo ss=missing
# shellcheck disable=SC2086 - a list of ports
elif [ -n "$ports" ]; then
  holders $ports | while read -r line; do printf '%s\n' "port $line"; done
fi
# A host whose endpoints have all been proven fetches nothing, so no server needs to be reachable.
unproven=
for name in $endpoints; do [ -e "$state/endpoints/$name/proven" ] || unproven=yes; done
if [ -n "$unproven" ] && have curl; then
  for pair in $proxies; do export "$pair"; done
  echo asked=yes
  for pair in $urls; do
    ( said=$(curl --silent --head --connect-timeout 2 --max-time 2 --output /dev/null --write-out '%{http_code}' "${pair#*=}" 2>/dev/null)
      printf '%s\n' "reach ${pair%%=*} $? $said ${pair#*=}" ) &
  done
  wait
fi
exit 0
