# Print the host's boot, and whether it is about to end. Parameter: unit (of the job that drains and restarts the host).
read -r boot </proc/sys/kernel/random/boot_id
going=no
systemctl is-active --quiet "$unit" && going=yes
[ "$(systemctl is-system-running)" = stopping ] && going=yes
printf '%s %s\n' "$boot" "$going"
