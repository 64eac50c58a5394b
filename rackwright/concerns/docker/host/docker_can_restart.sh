# Stop no dockerd that could not start again. It stands behind docker_start.sh. The file $reason, if any, gets what went wrong, and
# $cause that a start would wait.
silent=$(docker_start_waits 10 | head -n 1)
[ -n "$silent" ] || exit 0
printf '%s\n' "$silent" | tee "${reason:-/dev/null}"
printf 'waits\n' >"${cause:-/dev/null}"
exit 1
