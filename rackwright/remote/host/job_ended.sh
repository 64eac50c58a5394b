# What follows a job, however it ended: its secrets go; when it was ended from outside, or by its time limit, it says so,
# and what it tried rolls back. Environment: JOB, SECRETS, TRIAL (a file that exists while it tries something, or
# nothing), and systemd's SERVICE_RESULT. The last thing it does is to leave the file `over`.
# What it has opened is closed by the file `undo` that it has left.
[ ! -f "$JOB/undo" ] || sh "$JOB/undo"
rm -rf "$SECRETS"
trap ': >"$JOB/over"' EXIT
[ -e "$JOB/status" ] && exit 0
read -r now _ </proc/uptime
read -r began <"$JOB/began"
seconds=$((${now%.*} - ${began%.*}))
printf '%s %s\n' "$SERVICE_RESULT" "$seconds" >"$JOB/ended"
case $SERVICE_RESULT in
  timeout) how="it took more than its time, and was ended after $seconds s" ;;
  *) how="it was ended from outside after $seconds s" ;;
esac
[ -n "$TRIAL" ] && [ -f "$TRIAL" ] || exit 0
sh "$TRIAL" cut "$how"
