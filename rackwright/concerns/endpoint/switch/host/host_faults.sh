# Measure whether this host is itself at fault for a failed switch; the file $cause gets `gpu` or `disk` then.
# Parameters: home; xids (numbers of errors of the hardware, separated by |); counters (names of nvidia-smi's);
# room (KiB that must be free). From outside: begun (when the switch began, by the host's clock) and moment: `before`
# only keeps the GPUs' error counters.
count() { # errors of all GPUs, or `gone` when a GPU does not answer; nothing where none can be counted
  command -v nvidia-smi >/dev/null || return 0
  told=$(timeout 30 nvidia-smi --query-gpu="$counters" --format=csv,noheader 2>/dev/null)
  case $? in
    0) printf '%s\n' "$told" | awk -F ', *' '{ for (i = 1; i <= NF; i++) n += $i == "Yes" ? 1 : ($i ~ /^[0-9]+$/ ? $i : 0) } END { print n + 0 }' ;;
    124) ;;
    *) echo gone ;;
  esac
}
xid() { # whether the kernel has told of broken hardware since the switch began
  journalctl --identifier kernel --since "$begun" --no-pager --output cat 2>/dev/null |
    grep -qE "NVRM: Xid \\([^)]*\\): ($xids)([^0-9]|\$)"
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
docker_root=$(timeout 10 docker info --format '{{.DockerRootDir}}' 2>/dev/null)
for folder in "$home" "$JOB" "$docker_root"; do
  if [ -d "$folder" ] && spoilt "$folder"; then printf 'disk\n' >"$cause"; fi
done
if xid || grown; then printf 'gpu\n' >"$cause"; fi
exit 0
