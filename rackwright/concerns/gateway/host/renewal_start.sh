# Let systemd look at the certificate twice a day, and now. Parameters: timer unit (empty: an order follows) surplus.
# shellcheck disable=SC2086 - a list of paths
rm -f $surplus && systemctl enable --quiet --no-reload "$timer" && systemctl daemon-reload && systemctl start "$timer" || exit 1
[ -z "$unit" ] || systemctl start --no-block "$unit"
