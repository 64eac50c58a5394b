# Remove names of an image; fails when one stays. Parameters: images (names, one a line).
command -v docker >/dev/null || exit 0
timeout 30 docker version >/dev/null 2>&1 || { echo "Docker does not answer, so no image was removed; next: journalctl -u docker --lines 50" >&2; exit 1; }
printf '%s\n' "$images" | while read -r image; do
  timeout 60 docker image inspect "$image" >/dev/null 2>&1 || continue
  said=$(timeout 900 docker image rm "$image" 2>&1) && continue
  timeout 60 docker image inspect "$image" >/dev/null 2>&1 || continue
  printf '%s\n' "the image $image stays: $said" >&2
  exit 1
done
