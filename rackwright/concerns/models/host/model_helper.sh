# Functions for programs that run in the serving image: a host then needs no Python, and no packages of Rackwright's.
# Parameters: container label (both of remove_helper.sh) image inside spec.
in_image() { # what the label says, the program's file, options of docker run; Docker must not pull silently
  helper=$1 pyz=$2
  shift 2
  docker run --rm --pull never --name "$container" --label "$label=$helper" --log-driver none --network host --userns host \
    --runtime runc --env NVIDIA_VISIBLE_DEVICES=void --cap-drop ALL --security-opt no-new-privileges --user 0:0 \
    --entrypoint python3 --env PYTHONUNBUFFERED=1 --env HOME=/tmp --volume "$SECRETS:$inside:ro" "$@" \
    "$image" "$inside/$pyz" "$spec" 2>&1
}
as_told() { # a command of a helper; its lines become the job's lines and progress, and it ends as the command did
  # A container outlives a client that was killed, and keeps its name: never two writers.
  { alone "$@"; printf '%s\n' "$?" >"$JOB/ended_with"; } |
    while IFS= read -r line || [ -n "$line" ]; do
      case $line in
        "progress: "*) event progress "${line#progress: }" ;;
        "whole: "*) printf '%s\n' "${line#whole: }" ;;
        *) printf '%s\n' "$line" ;;
      esac
    done
  read -r status <"$JOB/ended_with"
  return "$status"
}
