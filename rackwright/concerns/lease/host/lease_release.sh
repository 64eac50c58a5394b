# Give this run's lease back, once none of its commands is running. Parameters: lease id patience.
[ -f "$lease" ] || exit 0
exec 8>>"$lease.writers"
flock --timeout "$patience" 8 || exit 0
exec 9>>"$lease.lock"
flock --timeout "$patience" 9 || exit 0
if grep -qsxF "id=$id" "$lease"; then rm -f "$lease"; fi
exit 0
