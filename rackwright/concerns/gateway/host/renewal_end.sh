# End the looks at the certificate, and remove their files; account and certificate stay until a teardown. Parameters: timer surplus.
systemctl disable --quiet --now "$timer" 2>/dev/null
# shellcheck disable=SC2086 - a list of paths
rm -f $surplus && systemctl daemon-reload
