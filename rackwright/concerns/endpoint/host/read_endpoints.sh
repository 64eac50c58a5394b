# Print the state of every endpoint that is wanted or there, and of the units that start them at boot.
# Parameters: units home urls ("NAME URL" lines of the wanted endpoints).
if have docker && timeout 60 docker version >/dev/null 2>&1; then echo docker=up; else echo docker=down; fi
show "$units/rackwright.target"
show "$units/rackwright-boot.service"
show "$units/rackwright-restore.service"
printf '%s\n' "boot=$(systemctl is-enabled rackwright-boot.service 2>/dev/null)"
# A server that is busy with a long prompt may answer late, and must not be restarted for that.
ask() { curl --silent --noproxy '*' --max-time "$1" --output /dev/null --write-out '%{http_code}' "$2"; }
ours='{{index .Config.Labels "rackwright.endpoint"}}'
labels='{{if .State.Running}}{{with .Config.Labels}}{{index . "rackwright.release"}} {{index . "rackwright.serving"}} {{index . "rackwright.binding"}}{{end}}{{end}}'
for mark in "$home"/*/replaced-by; do
  if [ -f "$mark" ]; then own=${mark%/*} && printf '%s\n' "replaced ${own##*/} $(base64 -w0 <"$mark")"; fi
done
for name in $( { printf '%s\n' "$urls" | cut -d' ' -f1; ls "$home" 2>/dev/null; } | sort -u); do
  unit="rackwright-$name.service" own="$home/$name"
  [ -f "$own/replaced-by" ] && continue
  printf '%s\n' "endpoint $name"
  systemctl show --property=ActiveState,SubState,Result,NeedDaemonReload,UnitFileState "$unit" | sed 's/^/value /'
  # A container of that name without our label is somebody else's.
  running=
  if said=$(timeout 60 docker inspect --type container --format "$ours;$labels" "rackwright-$name" 2>/dev/null | head -n 1) && [ -n "$said" ]; then
    running=${said#*;}
    [ -n "${said%%;*}" ] || echo "value container=foreign"
  fi
  printf '%s\n' "value running=$running"
  printf '%s\n' "value current=$(basename "$(readlink "$own/current" 2>/dev/null)")"
  printf '%s\n' "value proven=$(basename "$(readlink "$own/proven" 2>/dev/null)")"
  [ -e "/run/systemd/system/$unit.d/rackwright-held.conf" ] && echo "value held=yes"
  [ -e "$own/not-admitted" ] && echo "value admitted=no"
  [ -f "$own/last-switch" ] && sed -n '1,4s/^/value last_/p' "$own/last-switch"
  [ -f "$units/$unit" ] && printf '%s\n' "unit $(base64 -w0 <"$units/$unit")"
  cmp -s "$units/$unit" "$own/current/$unit" && echo "value unit=same"
  (cd "$own/current" 2>/dev/null && sha256sum --check --strict --status SHA256SUMS 2>/dev/null) && echo "value files=whole"
  [ -f "$own/binding" ] && printf '%s\n' "binding $(base64 -w0 <"$own/binding")"
  [ -f "$own/proven-binding" ] && printf '%s\n' "proven_binding $(base64 -w0 <"$own/proven-binding")"
  [ -f "$own/current/spec.json" ] && printf '%s\n' "spec $(base64 -w0 <"$own/current/spec.json")"
  if [ -f "$own/proven/spec.json" ] && ! [ "$own/proven" -ef "$own/current" ]; then
    printf '%s\n' "proven_spec $(base64 -w0 <"$own/proven/spec.json")"
  fi
  # What runs may listen elsewhere than what is wanted.
  url=$(cat "$own/releases/${running%% *}/health-url" 2>/dev/null || printf '%s\n' "$urls" | sed -n "s/^$name //p")
  if [ -n "$url" ] && have curl && systemctl is-active --quiet "$unit"; then
    health=$(ask 3 "$url")
    [ "$health" = 000 ] && health=$(ask 15 "$url")
    printf '%s\n' "value health=$health"
  fi
done
exit 0
