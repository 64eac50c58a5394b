# Remove a container that has one of our labels. Parameters: container endpoint_label helper_label.
label="{{or (index .Config.Labels \"$endpoint_label\") (index .Config.Labels \"$helper_label\")}}"
found=$(timeout 30 docker inspect --type container --format "$label" "$container" 2>/dev/null) || exit 0
[ -n "$found" ] || exit 0
timeout 90 docker rm --force "$container" >/dev/null 2>&1
! timeout 30 docker inspect --type container "$container" >/dev/null 2>&1 || { printf '%s\n' "the container $container stays; next: docker rm --force $container" >&2; exit 1; }
