# An endpoint that was replaced no longer starts; its releases stay, to roll back to. Parameters: unit home by (names of
# what serves in its place) wants (the folder by which systemd starts it).
set -e
printf '%s\n' "$by" | durable_file "$home/replaced-by"
systemctl disable --quiet "$unit"
[ ! -d "$wants" ] || sync "$wants"
