# A daemon-reload can detach the GPUs of containers that keep running (nvidia-container-toolkit#48): ask in each.
# Parameters: except (names of the endpoints that are being switched).
timeout 30 docker ps --format '{{.ID}} {{.Label "rackwright.endpoint"}}' --filter label=rackwright.endpoint |
  while read -r id endpoint; do
    case " $except " in *" $endpoint "*) continue ;; esac
    lost=$(timeout 60 docker exec "$id" timeout 50 nvidia-smi -L 2>&1) && continue
    [ "$(timeout 30 docker inspect --format '{{.State.Running}}' "$id" 2>/dev/null)" = true ] || continue
    printf '%s\n' "a daemon-reload took the GPUs from endpoint $endpoint: $lost; next: systemctl restart rackwright-$endpoint" >&2
    exit 1
  done || exit 1
