# What NVIDIA's driver says of itself, its GPUs, and who uses them. Parameters: known (names of GPUs, a line each, of
# which nothing needs to be asked that `nvidia-smi -q` does not tell).
module=
[ ! -r /proc/driver/nvidia/version ] || while IFS= read -r line; do module="$module$line
"; done </proc/driver/nvidia/version
quote module "$module"
if have nvidia-smi; then
  # A wedged driver lets nvidia-smi hang for ever.
  xml=$(timeout 30 nvidia-smi -q -x 2>&1); status=$?
  printf '%s\n' "status $status"
  printf 'xml %s\n' "$(printf %s "$xml" | sed '/<supported_clocks>/,/<\/supported_clocks>/d' | gzip -c | base64 -w0)"
  # The shell's own patterns take seconds for a text of this length.
  told=$(printf '%s\n' "$xml" | sed -n 's/.*<product_name>\(.*\)<.*/name \1/p; s/.*<pid>\([0-9][0-9]*\)<.*/pid \1/p')
  other= pids=
  while read -r key value; do
    case $key in
    name) case "
$known
" in *"
$value
"*) ;; *) other=yes ;; esac ;;
    pid) case " $pids " in *" $value "*) ;; *) pids="$pids $value" ;; esac ;;
    esac
  done <<END
$told
END
  [ -z "$other" ] || timeout 30 nvidia-smi --query-gpu=uuid,index,compute_cap --format=csv,noheader 2>/dev/null | sed 's/^/gpu /'
  for pid in $pids; do
    belongs "$pid"
    user=$(stat -c %U "/proc/$pid" 2>/dev/null) || user='?'
    printf '%s\n' "process $pid $user ${inside:--}"
  done
fi
exit 0
