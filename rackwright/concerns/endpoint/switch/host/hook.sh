# Run one of the site's hooks, with what it must know in its environment. Parameters: hook words (quoted for sh)
# program (the first of them, which is all that is shown) seconds endpoint port release. The file $reason, if any, gets what went wrong, and $cause that it was a hook.
printf '%s\n' "running the $hook: $program"
export RACKWRIGHT_ENDPOINT="$endpoint" RACKWRIGHT_PORT="$port" RACKWRIGHT_RELEASE="$release"
# A hook does not get the path of the job's files: its messages are its output, and are data.
(unset JOB SECRETS reason cause; eval "exec timeout -k 5 $seconds $words") </dev/null
status=$?
# What it printed last may lack its end.
[ -z "$(tail -c 1 "${JOB:-.}/log" 2>/dev/null)" ] || echo
case $status in
  0) exit 0 ;;
  124 | 137) how="took more than $seconds s" ;;
  *) how="ended with status $status" ;;
esac
printf '%s\n' "the $hook $how"
printf '%s\n' "the $hook $how: $program" >"${reason:-/dev/null}"
printf 'hook\n' >"${cause:-/dev/null}"
exit 1
