# Docker Engine and NVIDIA's container toolkit: packages, its configuration, and users.
# Parameters: packages (what we ask about, one a line), driver (an expression: how names of the driver's packages begin),
# users, authority, and the paths to show: paths.
[ -r /etc/os-release ] && . /etc/os-release
printf '%s\n' "os=${ID:-}" "like=${ID_LIKE:-}" "codename=${UBUNTU_CODENAME:-${VERSION_CODENAME:-}}" "os_version=${VERSION_ID:-}"
have apt-get && echo apt=yes
have dockerd && echo engine=yes
have curl && echo curl=yes
have iptables && echo iptables=yes
have nft && echo nft=yes
have python3 && echo python3=yes
have nvidia-container-runtime && echo toolkit=yes
answer=
[ ! -r /sys/module/apparmor/parameters/enabled ] || read -r answer </sys/module/apparmor/parameters/enabled
[ "$answer" = Y ] && ! have apparmor_parser && echo apparmor=missing
store=/etc/ssl/certs name=${authority##*/}
[ -e "$store/${name%.crt}.pem" ] && ! [ "$authority" -nt "$store/ca-certificates.crt" ] && echo authority=trusted
# All packages at once, those that were only asked for as well: dpkg's list is read once.
dpkg-query -W -f '${Package} ${db:Status-Want} ${db:Status-Status} ${Version} ${Architecture}\n' '*' 2>/dev/null |
  awk -v packages="$packages" -v driver="^($driver)" 'BEGIN { split(packages, names, "\n"); for (place in names) ours[names[place]] }
    $1 == "dpkg" { print "arch=" $NF }
    $1 in ours || ($1 ~ driver && $3 == "installed") { print "package " $1 " " $2 " " $3 " " (NF > 4 ? $4 : "") }
    $3 !~ /^(installed|config-files|not-installed)$/ { print "broken " $1 " " $3 }'
have unattended-upgrade && grep -Eqs '^[[:space:]]*APT::Periodic::Unattended-Upgrade[[:space:]]+"?[1-9]' /etc/apt/apt.conf.d/* &&
  echo unattended=yes
for path in /var/lib/dpkg/updates/[0-9]*; do
  if [ -e "$path" ]; then echo "broken dpkg interrupted"; break; fi
done
for path in $paths; do show "$path"; done
each() { while read -r one; do printf '%s\n' "$1 $one"; done; }
if [ -n "$reading_engine" ]; then
  docker_words "$reading_daemon"
  lacks=$(docker_lacks "$reading_engine" "$reading_daemon")
  if [ -n "$lacks" ]; then
    printf '%s\n' "$lacks" | each lacks
    ! docker_unknown_to_firewalld 5 || echo rejects=yes
  fi
  docker_other_store "$reading_engine" "$reading_daemon" | each store
fi
case $reading_engine in
  *'"ServerVersion":"'?*) docker_asks_firewalld 5 ;;
  # One that is up and does not answer may wait for another, and a start of it would.
  *) docker_start_waits 5 ;;
esac | each waits
# Programs by which containers run now and will start again: a package may have taken them away since.
set --
processes=
for path in /proc/1/task/1/children "/proc/${reading_daemon:-0}"/task/*/children; do
  children=
  [ ! -r "$path" ] || read -r children <"$path"
  processes="$processes $children"
done
for process in $processes; do
  name=
  read -r name 2>/dev/null <"/proc/$process/comm"
  case $name in containerd-shim* | docker-proxy) set -- "$@" "/proc/$process/cmdline" ;; esac
done
[ "$#" = 0 ] || sed -z -s -n 1p "$@" 2>/dev/null | tr '\000' '\n' | while read -r path; do
  case $path in /*) [ -x "$path" ] || printf '%s\n' "lost $path" ;; esac
done
for user in $users; do
  groups=$(id -nG "$user" 2>/dev/null) && printf '%s\n' "user $user $groups"
done
exit 0
