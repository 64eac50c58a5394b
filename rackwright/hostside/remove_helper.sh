# Functions for a helper container, which has a name and a mark of its own. Parameters: label (of every helper), container.
remove_helper() { # take away what an earlier try has left, and nothing that only has its name; ends 0 when there was something
  found=$(timeout 30 docker inspect --type container --format "{{index .Config.Labels \"$label\"}}" "$container" 2>/dev/null) || return 1
  [ -n "$found" ] && timeout 90 docker rm --force "$container" >/dev/null 2>&1
}
alone() { # a command that runs the helper; again when it ends 125, Docker having started nothing, since an earlier one had its name
  "$@"
  alone=$?
  if [ $alone != 125 ] || ! remove_helper; then return $alone; fi
  "$@"
}
