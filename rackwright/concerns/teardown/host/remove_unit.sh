# Stop a unit of ours that is no endpoint's, and take it away. Parameters: unit units.
systemctl disable --now --quiet --no-reload "$unit" 2>/dev/null
rm -f "$units/$unit" && systemctl daemon-reload || exit 1
systemctl reset-failed "$unit" 2>/dev/null
exit 0
