# What keeps a container from its port, and a restart of dockerd puts right: a port that dockerd keeps of a container that is gone
# (await_start.sh), and Docker's chains that another tool has flushed. Once, and only where dockerd runs nothing that would go
# down with it. For a job that has started the unit, or joins its load at boot. Parameters: unit.
freed=
free_port() {
  [ -z "$freed" ] && what=$(hindered) && running=$(timeout 20 docker ps --quiet) && [ -z "$running" ] || return 1
  freed=yes
  silent=$(docker_start_waits 10 | head -n 1)
  if [ -n "$silent" ]; then
    event progress "$what, and dockerd is not restarted: $silent"
    return 1
  fi
  event progress "$what: restarting dockerd, which runs nothing"
  timeout 180 systemctl restart docker || return 1
  # A unit that waits for its own restart is not started before that is due, and looks dead until then.
  systemctl stop "$unit" 2>/dev/null
  systemctl reset-failed "$unit" 2>/dev/null
  systemctl start --no-block "$unit"
}
hindered() { # says what is in the way
  if port=$(kept_port); then
    echo "dockerd holds port $port and no container has it, as after a power cut"
    return 0
  fi
  case $(refused) in *'already exists in network'*) echo "Docker has the network of a container that is gone"; return 0 ;; esac
  [ -n "$(refused)" ] && gone=$(chains_gone) && [ -n "$gone" ] && echo "Docker's chains are gone ($gone)"
}
