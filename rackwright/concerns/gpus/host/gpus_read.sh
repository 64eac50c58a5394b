# What NVIDIA's driver says of itself, its GPUs, and who uses them.
module=$(cat /proc/driver/nvidia/version 2>/dev/null)
printf '%s\n' "module $(printf %s "$module" | base64 -w0)"
if have nvidia-smi; then
  # A wedged driver lets nvidia-smi hang for ever.
  xml=$(timeout 30 nvidia-smi -q -x 2>&1); printf '%s\n' "status $?"
  printf 'xml %s\n' "$(printf %s "$xml" | sed '/<supported_clocks>/,/<\/supported_clocks>/d' | gzip -c | base64 -w0)"
  timeout 30 nvidia-smi --query-gpu=uuid,index,compute_cap --format=csv,noheader 2>/dev/null | sed 's/^/gpu /'
  for pid in $(printf %s "$xml" | sed -n 's/.*<pid>\([0-9]*\)<.*/\1/p' | sort -u); do
    container=$(sed -n 's/.*\([0-9a-f]\{64\}\).*/\1/p' "/proc/$pid/cgroup" 2>/dev/null | head -n 1)
    printf '%s\n' "process $pid $(stat -c %U "/proc/$pid" 2>/dev/null || echo '?') ${container:--}"
  done
  if systemctl is-active --quiet docker.service; then
    timeout 5 docker ps --no-trunc --filter name=rackwright- --format 'container {{.ID}} {{.Names}}'
  fi
fi
exit 0
