# Check that an endpoint could be started again at the release that it serves. Parameters: endpoint unit file (the release's own).
[ -f "$file" ] || ! systemctl is-active --quiet "$unit" && exit 0
printf '%s\n' "endpoint $endpoint serves a release that is no longer on the host ($file), so it could not be started again; next: stop it by hand (systemctl stop $unit), then run the same command again" | tee "$reason"
exit 1
