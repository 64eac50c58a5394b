# Disarm a guard: only while its timer still waits, because afterwards the change is being taken back, or was.
# Parameters: unit trial.
[ "$(systemctl show --property=SubState --value "$unit.timer")" = waiting ] || exit 1
[ ! -e "$trial" ] || durably_gone "$trial" || exit 1
systemctl stop "$unit.timer" || exit 1
! systemctl is-active --quiet "$unit.service"
