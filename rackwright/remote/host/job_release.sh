# Release a job from which no other host will take, by an empty file beside its secrets. One that has ended, or another run's, gets none.
# Parameters: folder secrets nonce (the job's) released (the file).
seen=
[ ! -r "$folder/nonce" ] || read -r seen <"$folder/nonce"
[ "$seen" != "$nonce" ] || [ ! -d "$secrets" ] || : >"$secrets/$released"
