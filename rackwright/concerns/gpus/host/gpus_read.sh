# What NVIDIA's driver says of itself, its GPUs, and who uses them. Parameters: known (names of GPUs, a line each, of
# which nothing needs to be asked that `nvidia-smi -q` does not tell), diagnosis (file with the last one).
module=
[ ! -r /proc/driver/nvidia/version ] || while IFS= read -r line || [ -n "$line" ]; do module="$module$line
"; done </proc/driver/nvidia/version
quote module "$module"
! have dcgmi || echo dcgmi
[ ! -f "$diagnosis" ] || carry diagnosis "$diagnosis"
if have nvidia-smi; then
  # A wedged driver lets nvidia-smi hang for ever.
  xml=$(timeout 30 nvidia-smi -q -x 2>&1); status=$?
  printf '%s\n' "status $status"
  printf 'xml %s\n' "$(printf %s "$xml" | sed '/<supported_clocks>/,/<\/supported_clocks>/d' | gzip -c | base64 -w0)"
  # The shell's own patterns take seconds for a text of this length.
  entries=$(printf '%s\n' "$xml" | sed -n 's/.*<product_name>\(.*\)<.*/name \1/p; s/.*<pid>\([0-9][0-9]*\)<.*/pid \1/p')
  other= pids= names=0
  while read -r key value; do
    case $key in
    name) names=$((names + 1))
      case "
$known
" in *"
$value
"*) ;; *) other=yes ;; esac ;;
    pid) case " $pids " in *" $value "*) ;; *) pids="$pids $value" ;; esac ;;
    esac
  done <<END
$entries
END
  drivers=0
  for gpu in /proc/driver/nvidia/gpus/*/; do [ ! -d "$gpu" ] || drivers=$((drivers + 1)); done
  # The kernel's log is long, and only a GPU that is missing makes it worth a look: not all such lines have an Xid.
  if [ "$status" != 0 ] || [ "$names" -lt "$drivers" ]; then
    fallen=$(timeout 10 journalctl --boot _TRANSPORT=kernel --no-pager --output cat 2>/dev/null | grep -E 'NVRM: .*fallen off the bus' | tail -n 1)
    [ -z "$fallen" ] || quote fallen "$fallen"
  fi
  # The last line that a program prints may lack its end, and sed ends none.
  [ -z "$other" ] || { timeout 30 nvidia-smi --query-gpu=uuid,index,compute_cap --format=csv,noheader 2>/dev/null | sed 's/^/gpu /'; echo; }
  for pid in $pids; do
    belongs "$pid"
    user=$(stat -c %U "/proc/$pid" 2>/dev/null) || user='?'
    printf '%s\n' "process $pid $user ${inside:--}"
  done
fi
exit 0
