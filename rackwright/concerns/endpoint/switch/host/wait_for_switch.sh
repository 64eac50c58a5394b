# Let a switch end that an earlier run has left under way on the host. Parameters: job seconds.
left=$seconds
while systemctl is-active --quiet "$job" && [ "$left" -gt 0 ]; do
  [ $((left % 5)) = 0 ] && echo "an earlier run's switch is still under way: waiting for it"
  left=$((left - 1))
  sleep 1
done
