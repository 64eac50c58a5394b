# Start an endpoint whose pointers are in place. systemd is not reloaded any more: a reload can detach the GPUs of what has
# started already (nvidia-container-toolkit#48). Parameters: unit home release (its hash).
set -e
date '+%F %T.%6N' | durable_file "$home/switched"
# The same by the clock that nobody steps, and whose it is; after a power cut it is another boot's either way.
{ cat /proc/sys/kernel/random/boot_id; cut -d' ' -f1 /proc/uptime; } >"$home/switched-at"
event progress "switching to release $release"
systemctl reset-failed "$unit" 2>/dev/null || true
read -r asked _ </proc/uptime
asked=${asked%.*}${asked#*.}0000
systemctl start --no-block "$unit"
