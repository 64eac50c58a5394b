# Take away what an endpoint that was replaced has left: unit and container. Parameters: unit units, and those of
# remove_helper.sh, container and label.
remove_helper
# No reload of systemd, which can detach the GPUs of what serves now: it forgets an inactive unit on its own.
rm -f "$units/$unit"
systemctl reset-failed "$unit" 2>/dev/null
exit 0
