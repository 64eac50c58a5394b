# Put a unit back that was moved away, and its container, as they were found. Parameters: unit units folder container.
fail() { printf '%s\n' "$unit was not put back: $*" >&2; exit 1; }
was() { sed -n "s/^$2=//p" "$1" 2>/dev/null; }
if [ -e "$folder/$unit" ] || [ -L "$folder/$unit" ]; then
  if [ -e "$units/$unit" ] && ! cmp -s "$units/$unit" "$folder/$unit"; then
    fail "$units/$unit is there again; compare it with $folder/$unit, and move one of them away"
  fi
  cp -a "$folder/$unit" "$units/$unit" || exit 1
  if [ -d "$folder/$unit.d" ]; then mkdir -p "$units/$unit.d" && cp -a "$folder/$unit.d/." "$units/$unit.d/" || exit 1; fi
  systemctl daemon-reload
fi
if [ -f "$folder/$container.container" ]; then
  if timeout 60 docker inspect --type container "$container.aside" >/dev/null 2>&1; then
    timeout 60 docker rename "$container.aside" "$container" || fail "docker rename $container.aside $container failed"
  fi
  if [ "$(was "$folder/$container.container" running)" = true ]; then timeout 60 docker start "$container" >/dev/null || fail "docker start $container failed"; fi
  rm -f "$folder/$container.container"
fi
if [ -f "$folder/$unit.state" ]; then
  case "$(was "$folder/$unit.state" enabled)" in enabled*) systemctl enable --quiet "$unit" 2>/dev/null ;; esac
  case "$(was "$folder/$unit.state" active)" in active | activating | reloading) systemctl start --no-block "$unit" ;; esac
fi
rm -rf "$folder/$unit" "$folder/$unit.state" "$folder/$unit.d"
rmdir --ignore-fail-on-non-empty "$folder" 2>/dev/null
exit 0
