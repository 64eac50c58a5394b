# Says who has an endpoint's port, for jobs. Parameters: known (lines behind which requests go to the endpoint's own container,
# or nowhere: packed, as they are quoted within what is quoted itself). They are in the file `known` of the job afterwards.
port_holder() { # prints the process; nothing where it is the endpoint's own
  printf %s "$known" | base64 -d | gzip -dc >"$JOB/known" && sh "$JOB/known" 2>/dev/null | sed -n '1s/^stranger: //p'
}
