# How the last restart of dockerd under its endpoints ended. Parameters: home.
[ -f "$home/last-switch" ] && sed 's/^/last_/' "$home/last-switch"
exit 0
