# The port that dockerd keeps of a container that is gone (wait_ready.sh) is free after a restart of dockerd: once, and only
# where that runs nothing that would go down with it. For a job that has started the unit itself. Parameters: unit.
freed=
free_port() {
  [ -z "$freed" ] && port=$(kept_port) && running=$(timeout 20 docker ps --quiet) && [ -z "$running" ] || return 1
  freed=yes
  event progress "dockerd holds port $port and no container has it, as after a power cut: restarting dockerd, which runs nothing"
  systemctl restart docker || return 1
  # A unit that waits for its own restart is not started before that is due, and looks dead until then.
  systemctl stop "$unit" 2>/dev/null
  systemctl reset-failed "$unit" 2>/dev/null
  systemctl start --no-block "$unit"
}
