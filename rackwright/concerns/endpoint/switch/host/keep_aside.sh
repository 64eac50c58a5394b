# Stop a hand-made unit with Rackwright's name, and what runs under its container's name, and move both away.
# Parameters: unit units folder container (or nothing) label (of Rackwright's containers).
umask 077
fail() { printf '%s\n' "$unit could not be moved away: $*" >&2; exit 1; }
state() { systemctl "$1" "$unit" 2>/dev/null; }
mkdir -p -m 0755 "$folder" || exit 1
if [ -e "$units/$unit" ] || [ -L "$units/$unit" ]; then
  # Written once: a try that was cut has stopped it, and that is not how it was found.
  if [ ! -f "$folder/$unit.state" ]; then
    printf 'enabled=%s\nactive=%s\n' "$(state is-enabled)" "$(state is-active)" >"$folder/$unit.new" || exit 1
    sync -d "$folder/$unit.new" && mv -f "$folder/$unit.new" "$folder/$unit.state" || exit 1
  fi
  if [ -e "$folder/$unit" ] && ! cmp -s "$units/$unit" "$folder/$unit"; then fail "$folder/$unit is another one already; move it away"; fi
  cp -a "$units/$unit" "$folder/$unit" && sync -f "$folder" || exit 1
  systemctl disable --now --quiet --no-reload "$unit" 2>/dev/null
  case "$(state is-active)" in active | activating | deactivating | reloading) fail "it does not stop" ;; esac
  # Its drop-ins would hold for Rackwright's unit as well; Rackwright's, which the firewall has put there, stay.
  if [ -d "$units/$unit.d" ] && [ ! -e "$folder/$unit.d" ]; then
    mv -T "$units/$unit.d" "$folder/$unit.d" || exit 1
    for own in "$folder/$unit.d"/rackwright-*.conf; do
      [ ! -f "$own" ] || { mkdir -p "$units/$unit.d" && mv "$own" "$units/$unit.d/"; } || exit 1
    done
    rmdir --ignore-fail-on-non-empty "$folder/$unit.d"
  fi
  rm -f "$units/$unit" && systemctl daemon-reload && systemctl reset-failed "$unit" 2>/dev/null
fi
[ -n "$container" ] && command -v docker >/dev/null || exit 0
found=$(timeout 60 docker inspect --type container --format "{{.State.Running}} {{index .Config.Labels \"$label\"}}" "$container" 2>/dev/null) || exit 0
[ "${found#* }" = "" ] || exit 0
printf '%s\n' "running=${found%% *}" >"$folder/$container.container" || exit 1
timeout 60 docker stop "$container" >/dev/null 2>&1
timeout 60 docker inspect --type container "$container" >/dev/null 2>&1 || { rm -f "$folder/$container.container"; exit 0; }
timeout 60 docker rename "$container" "$container.aside" || fail "docker rename $container $container.aside failed"
