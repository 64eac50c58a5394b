# Put a unit back that was moved away, and its container, as they were found. Parameters: unit units aside container.
fail() { printf '%s\n' "$unit was not put back: $*" >&2; exit 1; }
was() { sed -n "s/^$2=//p" "$1" 2>/dev/null; }
if [ -e "$aside/$unit" ] || [ -L "$aside/$unit" ]; then
  if [ -e "$units/$unit" ] && ! cmp -s "$units/$unit" "$aside/$unit"; then
    fail "$units/$unit is there again; compare it with $aside/$unit, and move one of them away"
  fi
  cp -a "$aside/$unit" "$units/$unit" || exit 1
  if [ -d "$aside/$unit.d" ]; then mkdir -p "$units/$unit.d" && cp -a "$aside/$unit.d/." "$units/$unit.d/" || exit 1; fi
  systemctl daemon-reload
fi
if [ -f "$aside/$container.container" ]; then
  if timeout 60 docker inspect --type container "$container.aside" >/dev/null 2>&1; then
    timeout 60 docker rename "$container.aside" "$container" || fail "docker rename $container.aside $container failed"
  fi
  if [ "$(was "$aside/$container.container" running)" = true ]; then timeout 60 docker start "$container" >/dev/null || fail "docker start $container failed"; fi
  rm -f "$aside/$container.container"
fi
if [ -f "$aside/$unit.state" ]; then
  case "$(was "$aside/$unit.state" enabled)" in enabled*) systemctl enable --quiet "$unit" 2>/dev/null ;; esac
  case "$(was "$aside/$unit.state" active)" in active | activating | reloading) systemctl start --no-block "$unit" ;; esac
fi
rm -rf "$aside/$unit" "$aside/$unit.state" "$aside/$unit.d"
rmdir --ignore-fail-on-non-empty "$aside" 2>/dev/null
exit 0
