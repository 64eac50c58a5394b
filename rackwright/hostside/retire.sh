# Take away what an endpoint that was replaced has left: unit and container. Parameters: unit units, and those of
# remove_helper.sh, container and label.
remove_helper
rm -f "$units/$unit"
systemctl daemon-reload
systemctl reset-failed "$unit" 2>/dev/null
exit 0
