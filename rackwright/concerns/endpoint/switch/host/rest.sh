# Stop an endpoint whose clients are gone; its pointers stay, so that it is started again as it was. Parameters: unit
# home ready ("yes": the site's ready hook must let clients in again; the mark for that stays until it has).
[ "$ready" = no ] || : >"$home/not-admitted"
event progress "stopping"
systemctl stop "$unit" || exit 1
systemctl reset-failed "$unit" 2>/dev/null
exit 0
