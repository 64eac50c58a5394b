# Measure whether this host is itself at fault for a failed switch; the file $cause gets `gpu`, `disk` or `docker` then.
# Parameters: home; hardware (a pattern for what the kernel says of broken hardware); counters (names of nvidia-smi's);
# room (KiB that must be free); asks ("yes": dockerd was not what was to change, so it must answer).
# From outside: moment: `before` only keeps the GPUs' error counters.
count() { # errors of all GPUs, or `gone` when a GPU does not answer; nothing where none can be counted
  command -v nvidia-smi >/dev/null || return 0
  output=$(timeout 30 nvidia-smi --query-gpu="$counters" --format=csv,noheader 2>/dev/null)
  case $? in
    0) printf '%s\n' "$output" | awk -F ', *' '{ for (i = 1; i <= NF; i++) n += $i == "Yes" ? 1 : ($i ~ /^[0-9]+$/ ? $i : 0) } END { print n + 0 }' ;;
    124) ;;
    *) echo gone ;;
  esac
}
broken() { # whether the kernel has reported broken hardware since the job began, by the monotonic clock
  journalctl --boot _TRANSPORT=kernel --no-pager --output short-monotonic 2>/dev/null |
    awk -v from="$(cat "$JOB/began")" 'substr($0, 2) + 0 >= from' | grep -qE "$hardware"
}
grown() {
  before=$(cat "$JOB/gpu-errors" 2>/dev/null)
  after=$(count)
  case "$before/$after" in
    gone/* | /* | */) return 1 ;;
    */gone) return 0 ;;
  esac
  [ "$after" -gt "$before" ]
}
spoilt() { # whether a folder's file system is full, or takes nothing that is written
  [ "$(df -Pk "$1" | awk 'NR == 2 { print $4 }')" -lt "$room" ] && return 0
  probe="$1/.rackwright-probe"
  printf 'probe\n' 2>/dev/null >"$probe" && sync "$probe" 2>/dev/null
  kept=$?
  rm -f "$probe"
  [ $kept != 0 ]
}
if [ "$moment" = before ]; then
  count >"$JOB/gpu-errors"
  exit 0
fi
docker_root=$(timeout 25 docker info --format '{{.DockerRootDir}}' 2>/dev/null) || [ "$asks" != yes ] || printf 'docker\n' >"$cause"
for folder in "$home" "$JOB" "$docker_root"; do
  if [ -d "$folder" ] && spoilt "$folder"; then printf 'disk\n' >"$cause"; fi
done
if broken || grown; then printf 'gpu\n' >"$cause"; fi
exit 0
