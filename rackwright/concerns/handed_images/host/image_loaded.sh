# After the pull, whose end is `status`: what was taken goes once the hosts behind this one have it, or none has asked for a while.
# A pull that failed is tried again by the next run, with what is here.
kill $serving 2>/dev/null
[ "$way" != layers ] || forget_address
if [ "$status" = 0 ]; then
  : >"$JOB/loaded"
  event progress "loaded; it is handed on until the hosts behind this one have it"
fi
wait $handing_on
(eval "$clean")
exit "$status"
