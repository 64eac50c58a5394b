# Let this host take its place in a group: it waits for the head, and starts nothing without it.
# Parameters: home unit units release (its hash) binding (its text) keep (proven releases that stay)
# held (drop-in that keeps the endpoint from starting).
set -e
printf %s "$binding" | durable_file "$home/binding"
printf '%s\n' "$keep" | durable_file "$home/keep"
[ -f "$home/current/$unit" ] || durable_link "$home/current" "releases/$release"
durable_file "$units/$unit" <"$home/current/$unit"
rm -f "$held"
systemctl daemon-reload
systemctl enable --quiet "$unit"
systemctl stop "$unit" 2>/dev/null || true
systemctl reset-failed "$unit" 2>/dev/null || true
systemctl start --no-block "$unit"
