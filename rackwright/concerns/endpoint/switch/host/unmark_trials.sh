# Remove a job's marks. Parameters: marked (endpoints) undone ("yes": nothing was begun, so an earlier job's marks come back)
# notes askers_limit (seconds). It ends when each gateway knows: the next host of a wave may be drained from then on.
#include askers.sh
asker_clock
since=$asker_now
for endpoint in $marked; do
  if [ $undone = yes ] && [ -s "$JOB/mark-$endpoint" ]; then durable_file "$marks/trial-$endpoint" <"$JOB/mark-$endpoint"
  elif [ $undone = no ] || [ -e "$JOB/mark-$endpoint" ]; then unmark "trial-$endpoint"; fi
done
for endpoint in $marked; do askers_await "$since" any "$askers_limit"; done
exit 0
