# Hand on a model that this host has verified, to hosts that lack it. Nothing in its folder is written.
set -u
printf %s "$program" | base64 -d >"$SECRETS/hand_on.pyz"
hand_on() {
  docker run --rm --pull never --name "$container" --label "$label=hand-on" --log-driver none --network host --userns host \
    --runtime runc --env NVIDIA_VISIBLE_DEVICES=void --cap-drop ALL --cap-add DAC_READ_SEARCH \
    --security-opt no-new-privileges --user 0:0 --entrypoint python3 --env PYTHONUNBUFFERED=1 --env HOME=/tmp --read-only \
    --volume "$folder:$folder:ro" --volume "$SECRETS:$inside:ro" "$image" "$inside/hand_on.pyz" "$spec" 2>&1
}
{ alone hand_on; printf '%s\n' "$?" >"$JOB/ended_with"; } |
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      "progress: "*) event progress "${line#progress: }" ;;
      "whole: "*) printf '%s\n' "${line#whole: }" ;;
      *) printf '%s\n' "$line" ;;
    esac
  done
read -r status <"$JOB/ended_with"
exit "$status"
