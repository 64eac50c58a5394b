# Docker Engine and NVIDIA's container toolkit: packages, daemon, its configuration, users, and who serves.
# Parameters: packages, endpoints, users, state, authority, job (the unit that restarts it), and the paths to show: paths.
[ -r /etc/os-release ] && . /etc/os-release
printf '%s\n' "os=${ID:-}"
printf '%s\n' "like=${ID_LIKE:-}"
printf '%s\n' "codename=${UBUNTU_CODENAME:-${VERSION_CODENAME:-}}"
printf '%s\n' "os_version=${VERSION_ID:-}"
printf '%s\n' "arch=$(dpkg --print-architecture 2>/dev/null)"
have apt-get && echo apt=yes
have dockerd && echo engine=yes
have curl && echo curl=yes
have iptables && echo iptables=yes
have nvidia-container-runtime && echo toolkit=yes
[ "$(cat /sys/module/apparmor/parameters/enabled 2>/dev/null)" = Y ] && ! have apparmor_parser && echo apparmor=missing
store=/etc/ssl/certs name=${authority##*/}
[ -e "$store/${name%.crt}.pem" ] && ! [ "$authority" -nt "$store/ca-certificates.crt" ] && echo authority=trusted
dpkg-query -W -f '${Package} ${db:Status-Want} ${db:Status-Status} ${Version}\n' $packages 2>/dev/null | sed 's/^/package /'
dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null |
  sed -n '/^installed /d; /^config-files /d; /^not-installed /d; s/^\([^ ]*\) \(.*\)/broken \2 \1/p'
ls /var/lib/dpkg/updates 2>/dev/null | grep -q '^[0-9]' && echo "broken dpkg interrupted"
systemctl show docker.service --property=LoadState,ActiveState,UnitFileState,NeedDaemonReload | sed 's/^/unit./'
systemctl is-active --quiet "$job" && echo restarting=yes
# Any docker command would start a stopped dockerd through its socket, and a reading changes nothing.
if systemctl is-active --quiet docker.service; then
  printf '%s\n' "info $(timeout 10 docker info --format '{{json .}}' 2>/dev/null | base64 -w0)"
fi
for path in $paths; do show "$path"; done
for user in $users; do
  getent passwd "$user" >/dev/null && printf '%s\n' "user $user $(id -nG "$user" 2>/dev/null)"
done
for name in $(printf '%s\n' $endpoints; ls "$state/endpoints" 2>/dev/null); do
  systemctl is-active --quiet "rackwright-$name.service" && printf '%s\n' "serving $name"
done
exit 0
