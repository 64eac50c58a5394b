# How the last restart of dockerd under its endpoints ended. Parameters: home.
[ ! -f "$home/last-switch" ] || first_lines 4 last_ "$home/last-switch"
exit 0
