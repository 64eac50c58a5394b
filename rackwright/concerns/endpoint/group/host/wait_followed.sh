# Wait until this member runs what its head has committed. Parameters: home unit release seconds.
left=$seconds
while [ "$left" -gt 0 ]; do
  [ "$(readlink "$home/proven")" = "releases/$release" ] && systemctl is-active --quiet "$unit" && exit 0
  [ $((left % 15)) = 0 ] && journalctl --unit "$unit" --no-pager --output cat --lines 1 | cut -c1-200
  left=$((left - 1))
  sleep 1
done
printf '%s\n' "it has not followed its head to release $release; next: journalctl -u $unit --lines 50"
exit 1
