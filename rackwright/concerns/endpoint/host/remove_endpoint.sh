# Stop an endpoint and take its unit, its container and its folder away; fails when something of it does not go.
# Parameters: unit endpoint label (of its container) home units group (its folder while it runs).
fail() { printf '%s\n' "endpoint $endpoint is not gone: $*" >&2; exit 1; }
systemctl disable --now --quiet --no-reload "$unit" 2>/dev/null
case "$(systemctl is-active "$unit")" in
  active | activating | deactivating | reloading) fail "$unit does not stop; next: systemctl status $unit" ;;
esac
containers() { timeout 60 docker ps --all --quiet --filter "label=$label=$endpoint"; }
# Any docker command would start a stopped dockerd through its socket; its containers ended with it.
if command -v docker >/dev/null && systemctl is-active --quiet docker.service; then
  left=$(containers) || fail "Docker does not answer; next: journalctl -u docker --lines 50"
  # shellcheck disable=SC2086 - a list of ids
  [ -z "$left" ] || timeout 120 docker rm --force $left >/dev/null 2>&1
  left=$(containers) || fail "Docker does not answer; next: journalctl -u docker --lines 50"
  [ -z "$left" ] || fail "its container stays; next: docker rm --force $left"
fi
rm -f "$units/$unit" && systemctl daemon-reload || fail "$units/$unit stays"
systemctl reset-failed "$unit" 2>/dev/null
rm -f "/var/lib/rackwright/marks/trial-$endpoint" "/var/lib/rackwright/marks/watch-$endpoint" "/var/lib/rackwright/marks/sick-$endpoint"
rm -rf "$home" "$group" || fail "$home stays"
