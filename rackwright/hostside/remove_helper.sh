# A function: take away a helper container that an earlier try has left, and nothing that only has its name.
# Parameters: label (what every helper of ours has), container.
remove_helper() {
  found=$(docker inspect --type container --format "{{index .Config.Labels \"$label\"}}" "$container" 2>/dev/null) || return 0
  [ -z "$found" ] || docker rm --force "$container" >/dev/null 2>&1
}
