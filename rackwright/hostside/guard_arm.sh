# Make a change that the host takes back by itself unless somebody disarms the timer in time.
# Parameters: unit folder undo sum seconds change. Standard input: the undo script.
umask 077
mkdir -p "$folder"
systemctl stop "$unit.timer" "$unit.service" 2>/dev/null
systemctl reset-failed "$unit.service" 2>/dev/null
cat >"$undo"
if ! printf '%s\n' "$sum  $undo" | sha256sum --check --status; then
  echo "the connection was cut while the way back arrived, so nothing was changed" >&2
  exit 1
fi
systemd-run --quiet --collect --on-active="$seconds" --timer-property=AccuracySec=100ms --unit="$unit" /bin/sh "$undo" || exit 1
sh -c "$change" && exit 0
systemctl stop "$unit.timer"
sh "$undo"
exit 1
