# A daemon-reload can detach the GPUs of containers that keep running (nvidia-container-toolkit#48): ask in each.
# Parameters: except (the endpoint that is being switched, or nothing).
docker ps --format '{{.ID}} {{.Label "rackwright.endpoint"}}' --filter label=rackwright.endpoint |
  while read -r id endpoint; do
    [ "$endpoint" = "$except" ] && continue
    lost=$(docker exec "$id" nvidia-smi -L 2>&1) && continue
    [ "$(docker inspect --format '{{.State.Running}}' "$id" 2>/dev/null)" = true ] || continue
    printf '%s\n' "a daemon-reload took the GPUs from endpoint $endpoint: $lost; next: systemctl restart rackwright-$endpoint" >&2
    exit 1
  done || exit 1
