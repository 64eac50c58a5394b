# Stop nothing before what a start needs is there: what runs needs none of it, so it may be gone for weeks.
# Parameters: unit (what would be stopped; nothing is asked where it does not run), releases (folders of what is to start and of
# what is to come back), publishes ("yes": one of them publishes its port), room (KiB), written (folders of containerd's), again
# ("yes": this is asked for the second time, after a drain, of what a moment can take), by ("switch", "drain", or "boot": a restart of the host makes again
# what dockerd and the driver hold, and needs what it starts by).
# The file $reason gets what is missing and the next command, $cause that it is the host's.
systemctl is-active --quiet "$unit" || exit 0
lacking() { # the cause, what is missing
  printf '%s\n' "$2" | tee "${reason:-/dev/null}"
  printf '%s\n' "$1" >"${cause:-/dev/null}"
  exit 1
}
if [ "$by" = boot ]; then
  publishes=no
  case $(systemctl is-enabled docker.service 2>/dev/null) in
    masked*) lacking docker "docker.service is masked, so nothing could be started after a restart; next, on it: systemctl unmask docker.service" ;;
  esac
fi
by_hand() { # a path; sets where it is mounted, and from which disk, where no unit and no line of /etc/fstab does that
  from=$(findmnt --noheadings --first-only --output SOURCE --target "$1" 2>/dev/null)
  mounted=$(findmnt --noheadings --first-only --output TARGET --target "$1" 2>/dev/null)
  case $mounted:$from in /:* | *:/dev/*\[* | :*) return 1 ;; *:/dev/*) ;; *) return 1 ;; esac
  [ -z "$(systemctl show --property=FragmentPath --value "$(systemd-escape --path --suffix=mount "$mounted")")" ]
}
daemon=$(systemctl show --property=MainPID --value docker.service)
# A start and a stop of a container ask containerd and D-Bus, and for a port that it publishes firewalld, where dockerd has found it,
# and iptables.
case $by:$publishes in
  boot:*) silent= ;; # which starts all of them
  *:yes) silent=$(docker_start_waits 10 | head -n 1) ;;
  *) silent=$({ docker_asks_bus 10; docker_asks_containerd 10; } | head -n 1) ;;
esac
[ -z "$silent" ] || lacking waits "$silent"
if [ "$again" = yes ]; then
  [ "$publishes" = yes ] && [ -n "$(docker_lacks '{}' "$daemon")" ] || exit 0
fi
info=$(timeout 25 docker info --format '{{json .}}' 2>/dev/null)
case $info in
  *'"ServerVersion":"'?*) ;;
  *) [ "$by" != boot ] || exit 0 # that may be what it is restarted for
    lacking docker "Docker does not answer, so nothing could be started again; next: journalctl -u docker --lines 50" ;;
esac
case $by:$info in
  boot:*)
    other=$(docker_other_store "$info" "$daemon" | tr '\n' ' ')
    [ -z "$other" ] || lacking needs "dockerd takes another store at its next start (${other% }, an edit that it has not taken yet), where the images of now are missing; next, on it: take the edit back; or systemctl stop $unit, systemctl restart docker, then pyinfra INVENTORY deploy.py" ;;
  *'"ContainerdCommit":{"ID":"N/A"'*) lacking docker "containerd does not answer, so Docker could neither stop nor start a container; next, on it: systemctl start containerd" ;;
esac
if [ "$publishes" = yes ]; then
  gone=$(docker_lacks "$info" "$daemon" | tr '\n' ',' | sed 's/,$//; s/,/, /g')
  way="pyinfra INVENTORY deploy.py restarts dockerd in the host's turn; or rackwright drain INVENTORY --limit HOST --reason chains, on it: systemctl restart docker, rackwright undrain INVENTORY --limit HOST"
  [ "$by" != drain ] || way="on it, once it is drained: systemctl restart docker"
  [ -z "$gone" ] || lacking needs "Docker's chains are gone ($gone), so no container that publishes a port could start; next: $way"
fi
# The programs by which it runs now are those that its next start takes, and a package may have taken them away since.
lost_program() { # a process; prints the path by which it was started, where that is gone
  path=$(tr '\000' '\n' <"/proc/$1/cmdline" 2>/dev/null | sed 1q)
  case $path in /*) [ -x "$path" ] || printf '%s\n' "$path" ;; esac
}
running=$(timeout 25 docker inspect --type container --format '{{.State.Pid}}' "${unit%.service}" 2>/dev/null)
shim=$(sed -n 's/.*) [A-Z] \([0-9]*\) .*/\1/p' "/proc/${running:-0}/stat" 2>/dev/null)
for process in ${shim:-} $([ "$publishes" != yes ] || cat "/proc/$daemon"/task/*/children 2>/dev/null); do
  case $(cat "/proc/$process/comm" 2>/dev/null) in containerd-shim* | docker-proxy) ;; *) continue ;; esac
  gone=$(lost_program "$process")
  [ -z "$gone" ] || lacking needs "$gone, by which Docker starts containers, is no longer on this host; next: apt-get install --reinstall $([ "${gone##*/}" = docker-proxy ] && echo 'docker.io or docker-ce' || echo 'containerd or containerd.io')"
done
for runtime in nvidia runc; do
  own=$(printf '%s\n' "$info" | sed -n 's/.*"Runtimes":{\(.*\)/\1/p' | sed -n 's/.*"'$runtime'":{\([^}]*\)}.*/\1/p')
  case $own in *'"path":"'*) own=${own#*'"path":"'} own=${own%%'"'*} ;; *) continue ;; esac
  (PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH; command -v "$own") >/dev/null ||
    lacking needs "$own, by which Docker starts containers, is no longer on this host; next: apt-get install --reinstall $([ $runtime = nvidia ] && echo nvidia-container-toolkit || echo runc)"
done
case $info in *'"nvidia":{'*) ;; *) lacking needs "dockerd no longer has the runtime nvidia; next: pyinfra INVENTORY deploy.py" ;; esac
if [ "$by" != boot ] && command -v nvidia-smi >/dev/null; then
  output=$(timeout 30 nvidia-smi -L 2>&1)
  case $output in *'Failed to initialize NVML'*) lacking gpu "$(printf '%s\n' "$output" | tr '\n' ' ' | cut -c1-200): a container could not start with GPUs; next: rackwright reboot INVENTORY --limit HOST, so that the installed driver's module is loaded" ;; esac
fi
root=$(printf '%s\n' "$info" | sed -n 's/.*"DockerRootDir":"\([^"]*\)".*/\1/p')
for folder in "$root" $written; do
  [ -d "$folder" ] || continue
  words=$( (printf 'probe\n' >"$folder/.rackwright-probe" && sync "$folder/.rackwright-probe") 2>&1)
  taken=$?
  rm -f "$folder/.rackwright-probe"
  [ $taken = 0 ] || lacking disk "nothing can be written to $folder, so no container could start ($(printf %s "$words" | tr '\n' ' ' | cut -c1-200)); next: findmnt --target $folder; df -h $folder; journalctl -k --grep 'remount|I/O error'"
  free=$(df -Pk "$folder" 2>/dev/null | awk 'NR == 2 { print $4 }')
  [ "${free:-$room}" -ge "$room" ] || lacking disk "only $free KiB are free in $folder, so no container could start; next: du -xh -d2 $folder | sort -h | tail"
  # Some file systems do not count them, and say 0 of 0.
  inodes=$(df -Pi "$folder" 2>/dev/null | awk 'NR == 2 && $2 > 0 { print $4 }')
  [ "${inodes:-100}" -ge 100 ] || lacking disk "only $inodes files can still be made in $folder, so no container could start; next: df -i $folder"
done
for release in $releases; do
  [ -f "$release/needs" ] || continue
  while read -r kind name; do
    case $kind in
      image)
        output=$(timeout 60 docker image inspect --format . "$name" 2>&1) && continue
        case $output in *[Nn]'o such image'*) lacking needs "release ${release##*/} could not start: its image is no longer on this host; next, on it: docker pull $name" ;; esac ;;
      path)
        # The files in the endpoint's own folder are made by the start itself, such as the engine's file with its key.
        case $name in "${release%/releases/*}"/*) continue ;; esac
        # A file system that does not answer tells nothing about its files.
        timeout 10 stat -L "$name" >/dev/null 2>&1
        [ $? != 1 ] || lacking needs "release ${release##*/} could not start: $name is no longer on this host; next: findmnt --target $name; mount what is missing"
        [ "$by" != boot ] || ! by_hand "$name" ||
          lacking needs "release ${release##*/} could not start after a restart: $name is below $mounted, which was mounted by hand ($from); next, on it: write it into /etc/fstab" ;;
    esac
  done <"$release/needs"
done
exit 0
