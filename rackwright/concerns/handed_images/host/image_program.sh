# Functions that run the program that hands on. No image may be on the host yet, so it runs by the host's own Python and not in a container.
# Parameters: program (Python, base64) spec.
set -u
export http_proxy https_proxy no_proxy HTTP_PROXY="$http_proxy" HTTPS_PROXY="$https_proxy" NO_PROXY="$no_proxy"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || {
  printf '%s\n' "error: images are handed on by Python 3.9 or newer, which this host does not have" \
    "apt-get install python3; or set downloads.hand_on.images: false for this host"
  exit 78
}
printf %s "$program" | base64 -d >"$SECRETS/hand_on.pyz"
hand_on() { # makes the file `whole` once all files are here, and `ended_with` at its end
  { python3 "$SECRETS/hand_on.pyz" "$spec" 2>&1; printf '%s\n' "$?" >"$JOB/ended_with"; } |
    while IFS= read -r line || [ -n "$line" ]; do
      case $line in
        "progress: "*) event progress "${line#progress: }" ;;
        "whole: "*) printf '%s\n' "${line#whole: }"; : >"$JOB/whole" ;;
        *) printf '%s\n' "$line" ;;
      esac
    done
}
