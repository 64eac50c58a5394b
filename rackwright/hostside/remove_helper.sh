# A function: take away a helper container that an earlier try has left, and nothing that only has its name.
# Parameters: label (what every helper of ours has), container.
remove_helper() {
  found=$(timeout 30 docker inspect --type container --format "{{index .Config.Labels \"$label\"}}" "$container" 2>/dev/null) || return 0
  [ -z "$found" ] || timeout 90 docker rm --force "$container" >/dev/null 2>&1
}
