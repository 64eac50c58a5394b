# Start this host's IMEX again, beside the driver that it has now, and wait until all hosts of its domain have joined. Parameter: seconds
# (0: it joins, and is not waited for).
fail() { printf '%s\n' "$*" >&2; exit 1; }
command -v nvidia-imex-ctl >/dev/null || fail "nvidia-imex is not installed; next: install the nvidia-imex of the driver's version"
timeout 60 systemctl restart nvidia-imex.service || fail "nvidia-imex does not start; next: journalctl -u nvidia-imex"
[ "$seconds" -gt 0 ] || exit 0
end=$(($(date +%s) + seconds))
while :; do
  state=$(timeout 10 nvidia-imex-ctl -N 2>/dev/null | sed -n 's/^ *Domain State: *\([A-Z_]*\).*/\1/p')
  [ "$state" != UP ] || exit 0
  [ "$(date +%s)" -lt "$end" ] || fail "it is ${state:-not known} after $seconds s; next, on each of its hosts: nvidia-imex-ctl -N; journalctl -u nvidia-imex"
  sleep 2
done
