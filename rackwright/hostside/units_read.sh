# The units that were asked for, and for each, in that order, what systemd says, with an empty line between two.
printf '%s\n' "$reading_units" "$reading_states"
[ "$reading_told" = 0 ] || { echo "systemctl show failed" >&2; exit 1; }
exit 0
