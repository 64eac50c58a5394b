# Says who has an endpoint's port, for jobs. Parameters: known (lines behind which requests go to the endpoint's own container,
# or nowhere: packed, as they are quoted within what is quoted itself). They lie in the file `known` of the job afterwards.
stranger() { # prints who it is, and nothing where it is nobody else
  printf %s "$known" | base64 -d | gzip -dc >"$JOB/known" && sh "$JOB/known" 2>/dev/null | sed -n '1s/^stranger: //p'
}
