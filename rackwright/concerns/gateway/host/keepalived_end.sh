# End keepalived, which takes the address from this host, and remove its files. Parameters: unit surplus.
systemctl disable --quiet --now "$unit" 2>/dev/null
# shellcheck disable=SC2086 - a list of paths
rm -f $surplus && systemctl daemon-reload
