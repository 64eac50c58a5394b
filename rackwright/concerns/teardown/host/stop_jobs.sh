# End jobs and guards of Rackwright that an earlier run has left under way. Parameters: units (names).
for unit in $units; do
  case $unit in
    # dpkg that is cut leaves packages half-configured.
    *-job-docker-install.service)
      printf '%s\n' "waiting for $unit"
      waited=0
      while systemctl is-active --quiet "$unit" && [ $waited -lt 1700 ]; do sleep 1; waited=$((waited + 1)); done
      ;;
  esac
  systemctl stop "$unit" 2>/dev/null
  systemctl reset-failed "$unit" 2>/dev/null
  case "$(systemctl is-active "$unit")" in
    active | activating | deactivating | reloading) printf '%s\n' "$unit does not end; next: systemctl status $unit" >&2; exit 1 ;;
  esac
done
exit 0
