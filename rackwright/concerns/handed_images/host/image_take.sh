# Take the files of an image from other hosts, or from its registry for them, hand them on, and serve them to this host's own Docker.
# Parameters: registry (Python, base64) kinds (JSON) folder local (address and port of the host's own registry) clean (a script).
mkdir -p -m 0700 "${folder%/*}" "$folder" || exit 1
# Whatever ends this job: what is loaded needs its files no longer.
{ printf '%s\n' "$clean"; cat "$JOB/undo" 2>/dev/null; } >"$JOB/undo.new" && mv -f "$JOB/undo.new" "$JOB/undo"
printf %s "$registry" | base64 -d >"$SECRETS/image_registry.py"
hand_on &
handing_on=$!
until [ -e "$JOB/whole" ] || [ -e "$JOB/ended_with" ]; do sleep 0.3; done
if [ ! -e "$JOB/whole" ]; then
  wait $handing_on
  read -r status <"$JOB/ended_with"
  [ -e "$JOB/whole" ] || exit "$status"
fi
python3 "$SECRETS/image_registry.py" "$folder" "${local%:*}" "${local##*:}" "$kinds" &
serving=$!
tries=0
until python3 -c 'import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1)' "${local%:*}" "${local##*:}" 2>/dev/null; do
  tries=$((tries + 1))
  kill -0 $serving 2>/dev/null && [ $tries -lt 20 ] || {
    printf '%s\n' "error: $local cannot be listened at" "see which program has it: ss -ltnp 'sport = :${local##*:}'"
    exit 1
  }
  sleep 0.3
done
led_to= loaded=
way=$(way_in)
case $way in
  name) led_to=$local ;;
  *) load_layers || exit 1 ;;
esac
[ "$way" != tag ] || { timeout 60 docker tag "$here" "$tagged" && forget_address && loaded=yes; }
