# Let this host take its place in a group: it waits for the head, and starts nothing without it.
# Parameters: home unit units release (its hash) binding (its text) keep (proven releases that stay)
# held (drop-in that keeps the endpoint from starting).
set -e
# A unit that had failed when it was read may have come up on its own since, and serve with its head: then stopping it
# would end them both.
as_asked() {
  [ -f "$home/current/$unit" ] && [ ! -e "$held" ] && cmp -s "$home/current/$unit" "$units/$unit" || return 1
  printf %s "$binding" | cmp -s - "$home/binding" || return 1
  case $(systemctl is-active "$unit") in active | activating) return 0 ;; *) return 1 ;; esac
}
if as_asked; then
  printf '%s\n' "$keep" | durable_file "$home/keep"
  systemctl is-enabled --quiet "$unit" || systemctl enable --quiet "$unit"
  exit 0
fi
printf %s "$binding" | durable_file "$home/binding"
printf '%s\n' "$keep" | durable_file "$home/keep"
[ -f "$home/current/$unit" ] || durable_link "$home/current" "releases/$release"
durable_file "$units/$unit" <"$home/current/$unit"
rm -f "$held"
rmdir "${held%/*}" 2>/dev/null || true
systemctl enable --quiet --no-reload "$unit"
systemctl daemon-reload
systemctl stop "$unit" 2>/dev/null || true
systemctl reset-failed "$unit" 2>/dev/null || true
systemctl start --no-block "$unit"
