# Let the timers and sockets of the watch run from now on. Parameters: enabled, restarted (those whose file is new).
# shellcheck disable=SC2086 - lists of units
systemctl enable --quiet --no-reload $enabled && systemctl daemon-reload || exit 1
# shellcheck disable=SC2086
[ -z "$restarted" ] || systemctl restart $restarted || exit 1
# shellcheck disable=SC2086
systemctl start $enabled
