# Stop and remove a unit of Rackwright's other than an endpoint's. Parameters: unit units.
systemctl disable --now --quiet --no-reload "$unit" 2>/dev/null
rm -f "$units/$unit" && systemctl daemon-reload || exit 1
systemctl reset-failed "$unit" 2>/dev/null
exit 0
