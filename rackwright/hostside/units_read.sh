# The units that were asked for, and for each, in that order, what systemd says, with an empty line between two.
printf '%s\n' "$reading_units" "$reading_states"
[ -z "$reading_pipe" ] || {
  printf '%s\n' "$reading_pipe is a pipe, and systemd would wait for its writer without a limit, and all that asks systemd; next, on it: rm $reading_pipe" >&2
  exit 1
}
[ "$reading_told" = 0 ] || { echo "systemctl show failed" >&2; exit 1; }
exit 0
