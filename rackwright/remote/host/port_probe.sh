# Connect to a port; what is answered there does not matter. Parameters: address port seconds.
# By bash, which a host has before its first deploy too. Prints why it failed, and the status: 124 means no answer.
export LC_ALL=C
# shellcheck disable=SC2016 - bash expands its own arguments
timeout "$seconds" bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$address" "$port" 2>&1
printf 'status=%s\n' "$?"
exit 0
