# Start an endpoint whose pointers are in place. systemd is no longer reloaded: a reload can detach the GPUs of what has
# started already (nvidia-container-toolkit#48). Parameters: unit home release (its hash).
set -e
# What had begun to start on its own before this, as at boot, may end by what went before: the head of a group does when
# it was in line with a member that restarts after it. That end is not the release's fault; one of its own start is.
start_anew() {
  asked=0
  event progress "an earlier start has ended: starting again"
  systemctl stop "$unit" 2>/dev/null
  systemctl reset-failed "$unit" 2>/dev/null
  systemctl start --no-block "$unit"
}
date '+%F %T.%6N' | durable_file "$home/switched"
# The same by the monotonic clock, and whose it is; after a power cut it is another boot's either way.
{ cat /proc/sys/kernel/random/boot_id; cut -d' ' -f1 /proc/uptime; } >"$home/switched-at"
event progress "switching to release $release"
systemctl reset-failed "$unit" 2>/dev/null || true
read -r asked _ </proc/uptime
asked=${asked%.*}${asked#*.}0000
systemctl start --no-block "$unit"
