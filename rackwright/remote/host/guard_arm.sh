# Make a change that the host takes back on its own unless the timer is disarmed in time.
# Parameters: unit folder undo sum seconds change; trial (a file) and trying (a script, or nothing): what of it must roll
# back at boot, when the host goes down before that. Standard input: the undo script.
umask 077
mkdir -p "$folder"
systemctl stop "$unit.timer" "$unit.service" 2>/dev/null
systemctl reset-failed "$unit.service" 2>/dev/null
cat >"$undo"
if ! printf '%s\n' "$sum  $undo" | sha256sum --check --status; then
  echo "the connection was cut while the way back arrived, so nothing was changed" >&2
  exit 1
fi
if [ -n "$trying" ]; then
  mkdir -p "${trial%/*}"
  printf %s "$trying" | durable_file "$trial" 0600 || exit 1
fi
systemd-run --quiet --collect --on-active="$seconds" --timer-property=AccuracySec=100ms --unit="$unit" /bin/sh -c 'sh "$1"; rm -f "$2"' undo "$undo" "$trial" || exit 1
# In a file, since it may be longer than an argument can be.
printf '%s\n' "$change" >"$undo.change" || exit 1
echo "the change begins"
sh "$undo.change" </dev/null && { rm -f "$undo.change"; exit 0; }
rm -f "$undo.change"
systemctl stop "$unit.timer"
sh "$undo"
rm -f "$trial"
exit 1
