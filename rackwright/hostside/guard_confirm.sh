# Disarm a guard: only while its timer still waits, because afterwards the change is being taken back, or was.
# Parameters: unit.
[ "$(systemctl show --property=SubState --value "$unit.timer")" = waiting ] && systemctl stop "$unit.timer" || exit 1
! systemctl is-active --quiet "$unit.service"
