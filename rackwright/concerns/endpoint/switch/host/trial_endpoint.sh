# What an endpoint rolls back to when the switch that tries a release on it is cut. Lies beside the endpoint's pointers,
# from before the first of them moves until the commit.
# Parameters: owner (unit of the switch) held (drop-in that keeps the endpoint from starting) unit units home; tried and
# tried_binding (its text); previous (the proven release, or nothing) and previous_binding; decided: by what the commit
# is known, `pointers`, or `trial` where several endpoints are tried at once: then only its absence says so.
committed() {
  [ "$decided" = pointers ] && [ "$(readlink "$home/proven")" = "releases/$tried" ] && printf %s "$tried_binding" | cmp -s - "$home/proven-binding"
}
restore() { # why it was cut
  committed && return 0
  if [ -n "$previous" ]; then
    printf %s "$previous_binding" | durable_file "$home/binding" || return 1
    printf %s "$previous_binding" | durable_file "$home/proven-binding" || return 1
    durable_file "$units/$unit" <"$home/releases/$previous/$unit" || return 1
    durable_link "$home/current" "releases/$previous" || return 1
    { grep -vx "$previous" "$home/history" 2>/dev/null; printf '%s\n' "$previous"; } | durable_file "$home/history" || return 1
    durable_link "$home/proven" "releases/$previous" || return 1
  elif [ "$decided" = trial ] || ! [ -L "$home/proven" ]; then
    systemctl disable --quiet --no-reload "$unit"
    durably_gone "$home/current" && durably_gone "$home/proven" || return 1
  fi
  printf '%s\n' "release=$tried" outcome=cut "time=$(date '+%F %T')" "reason=$1" | durable_file "$home/last-switch"
}
restart() {
  if committed; then
    :
  elif [ -n "$previous" ]; then
    systemctl restart --no-block "$unit"
  elif [ "$decided" = trial ] || ! [ -L "$home/proven" ]; then
    systemctl stop --no-block "$unit"
  fi
}
