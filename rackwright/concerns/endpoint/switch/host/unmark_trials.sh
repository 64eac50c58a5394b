# Remove a job's marks. Parameters: marked (endpoints) undone ("yes": nothing was begun, so an earlier job's marks come back).
for endpoint in $marked; do
  if [ $undone = yes ] && [ -s "$JOB/mark-$endpoint" ]; then durable_file "$marks/trial-$endpoint" <"$JOB/mark-$endpoint"
  elif [ $undone = no ] || [ -e "$JOB/mark-$endpoint" ]; then unmark "trial-$endpoint"; fi
done
exit 0
