# Functions that name what dockerd asks when it starts, and would wait for without a limit: D-Bus and firewalld on it (for each
# container that publishes a port as well), containerd (for each container), and the lock of iptables. What runs needs none of them.
# Nothing is printed for one that answers, also with an error: dockerd continues without it then.
docker_asks_firewalld() { # seconds; prints what does not answer, and the next command
  if ! command -v busctl >/dev/null; then
    # Only an active one is asked: the question alone could start it.
    { command -v firewall-cmd && systemctl is-active --quiet firewalld.service; } >/dev/null || return 0
    timeout "$1" firewall-cmd --state >/dev/null 2>&1
    [ $? != 124 ] || firewalld_silent
    return 0
  fi
  docker_asks_bus "$1"
  case $start_owner in
    'b true')
      # The question that dockerd itself asks.
      timeout "$1" busctl --system --auto-start=no call org.fedoraproject.FirewallD1 /org/fedoraproject/FirewallD1 \
        org.fedoraproject.FirewallD1 getDefaultZone >/dev/null 2>&1
      [ $? != 124 ] || firewalld_silent ;;
  esac
}
docker_asks_bus() { # seconds; sets `start_owner`: whether firewalld is there. Where systemd makes the cgroups, runc asks it by D-Bus as well
  start_owner=
  command -v busctl >/dev/null || return 0
  start_owner=$(timeout "$1" busctl --system --auto-start=no call org.freedesktop.DBus /org/freedesktop/DBus \
    org.freedesktop.DBus NameHasOwner s org.fedoraproject.FirewallD1 2>/dev/null)
  [ $? != 124 ] || printf '%s\n' "D-Bus does not answer, which dockerd asks for firewalld when it starts, and containers may need to start; next, on it: systemctl status dbus; journalctl -u dbus --lines 50"
}
docker_unknown_to_firewalld() { # seconds; true where firewalld runs without a zone for Docker's bridge, which a dockerd gives it that starts later
  start_zone=$(timeout "$1" busctl --system --auto-start=no call org.fedoraproject.FirewallD1 /org/fedoraproject/FirewallD1 \
    org.fedoraproject.FirewallD1.zone getZoneOfInterface s docker0 2>/dev/null) && [ "$start_zone" = 's ""' ]
}
firewalld_silent() {
  printf '%s\n' "firewalld does not answer on D-Bus, and dockerd waits for it without a limit when it starts and for each container's port; next, on it, with its endpoints drained (rackwright drain INVENTORY --limit HOST --reason firewalld): systemctl restart firewalld, which flushes Docker's chains; systemctl restart docker; then rackwright undrain INVENTORY --limit HOST"
}
docker_start_waits() { # seconds; prints the same for all that a start of dockerd asks
  docker_asks_firewalld "$1"
  docker_asks_containerd "$1"
  ! command -v iptables >/dev/null || iptables --wait 5 --numeric --list FORWARD >/dev/null 2>&1
  # 4 is a want of resources: the lock, or memory.
  [ $? != 4 ] || printf '%s\n' "the lock of iptables is held$(lock_holder), and dockerd waits for it without a limit when it starts and for each container's port; next, on it: ps -ef, or fuser -v /run/xtables.lock (package psmisc); end what holds it, or wait for its end"
}
docker_asks_containerd() { # seconds
  if command -v ctr >/dev/null && systemctl is-active --quiet containerd.service; then
    timeout "$1" ctr version >/dev/null 2>&1
    [ $? != 124 ] || printf '%s\n' "containerd does not answer, and dockerd waits for it when it starts, and to start or stop a container; next, on it: systemctl restart containerd, by which no container ends"
  fi
}
lock_holder() {
  start_inode=$(stat -c %i /run/xtables.lock 2>/dev/null) || return 0
  awk -v own=":$start_inode" '$2 == "FLOCK" && substr($6, length($6) - length(own) + 1) == own { print " by process " $5; exit }' /proc/locks 2>/dev/null
}
