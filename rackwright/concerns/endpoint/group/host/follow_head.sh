# Point a member at the release that its head serves, and start it again there. Argument: the release.
# Parameters: home unit units.
set -e
durable_file "$units/$unit" <"$home/releases/$1/$unit"
durable_link "$home/current" "releases/$1"
systemctl daemon-reload
systemctl stop "$unit" || true
systemctl reset-failed "$unit" 2>/dev/null || true
systemctl start --no-block "$unit"
