# Remove the marks of runs that have ended, unless a job of the host is still at work on them. Parameter: names.
for name in $names; do
  job=$(sed -n 's/^job=//p' "$marks/$name" 2>/dev/null | head -n 1 | tr -cd 'A-Za-z0-9._-')
  [ -z "$job" ] || ! systemctl is-active --quiet "rackwright-job-$job.service" || continue
  unmark "$name" || exit 1
done
exit 0
