# Stop an endpoint and take its unit, its container and its folder away. Parameters: unit container home units.
systemctl disable --now --quiet "$unit" 2>/dev/null
command -v docker >/dev/null && docker rm --force "$container" >/dev/null 2>&1
rm -f "$units/$unit"
systemctl daemon-reload
systemctl reset-failed "$unit" 2>/dev/null
rm -rf "$home"
exit 0
