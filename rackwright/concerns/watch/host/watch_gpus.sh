# Look at the GPUs and the network ports of this host, and tell what is broken and what is well again.
# It comes after durable.sh and tell.sh. Parameters: hardware (a pattern of the kernel's messages about broken hardware).
# Faults are `KEY TEXT` lines: what the kernel has said stays one up to the next boot, all else is a state, which is looked
# at again each time. What was once well is kept over boots: a GPU or a link that is missing since then is a fault.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH LC_ALL=C
umask 077
shown=/run/rackwright/gpus own=/run/rackwright/watch-gpus well=/var/lib/rackwright/watch/gpus-well last=/var/lib/rackwright/watch/gpus-faults
mkdir -p "${shown%/*}" "$own" "${well%/*}" || exit 1
read -r up _ </proc/uptime
up=${up%%.*}
[ -f "$well" ] || : >"$well"
: >"$own/faults.new"
fault() { printf '%s\n' "$1 $(printf %s "$2" | tr -c '[:print:]' ' ' | cut -c1-200)" >>"$own/faults.new"; }
said() { # new lines of the kernel; a cursor marks where the last look ended
  set -- --boot _TRANSPORT=kernel --no-pager --output cat --show-cursor
  [ ! -s "$own/cursor" ] || set -- "$@" --after-cursor "$(cat "$own/cursor")"
  # A host that logs each packet has gigabytes of all others.
  timeout 20 journalctl "$@" 2>/dev/null | grep -E "^-- cursor: |$hardware" >"$own/said"
  cursor=$(sed -n '$s/^-- cursor: //p' "$own/said")
  [ -z "$cursor" ] || printf '%s\n' "$cursor" >"$own/cursor"
  grep -E "$hardware" "$own/said"
}
# One fault a GPU and error, however often the kernel says it.
said | sed -n 's/.*\(NVRM: .*\)/\1/p' | while IFS= read -r line; do
  gpu=$(printf %s "$line" | sed -n 's/.*(PCI:\([0-9a-fA-F:.]*\)).*/\1/p; t; s/.*GPU \([0-9a-fA-F:.]*[0-9a-fA-F]\).*/\1/p')
  xid=$(printf %s "$line" | sed -n 's/.*Xid ([^)]*): \([0-9]*\).*/\1/p')
  key=kernel-${xid:-lost}-${gpu:-gpu}
  grep -q "^$key " "$own/kernel" 2>/dev/null || printf '%s\n' "$key $(printf %s "$line" | tr -c '[:print:]' ' ' | cut -c1-200)" >>"$own/kernel"
done
[ ! -f "$own/kernel" ] || cat "$own/kernel" >>"$own/faults.new"

# nvidia-smi takes a second on eight GPUs, and a wedged driver lets it hang for ever, where no signal ends it: it is asked every
# two minutes, and not again while an earlier one hangs.
still_asking() {
  asking= asker=
  [ ! -f "$own/asking" ] || read -r asking <"$own/asking"
  [ -z "$asking" ] || [ ! -r "/proc/$asking/comm" ] || read -r asker <"/proc/$asking/comm"
  [ "$asker" = nvidia-smi ]
}
read_gpus() { # rows `UUID KEY VALUE`
  # shellcheck disable=SC2016 - the shell in between writes its own number
  timeout -k 2 30 sh -c 'echo $$ >"$0/asking"; exec nvidia-smi -q -x' "$own" 2>/dev/null >"$own/xml"
  status=$?
  rm -f "$own/asking"
  awk -F '[<>]' '
    /<gpu id=/ { uuid = ""; errors = remaps = 0; failed = hot = state = "" }
    $2 == "uuid" { uuid = $3 }
    $2 == "volatile" { volatile = 1 } $2 == "/volatile" { volatile = 0 }
    $2 == "fabric" { fabric = 1 } $2 == "/fabric" { fabric = 0 }
    volatile && $2 ~ /uncorrectable/ { errors += $3 }
    $2 == "remapped_row_unc" { remaps += $3 }
    ($2 == "remapped_row_pending" || $2 == "remapped_row_failure") && $3 == "Yes" { remaps++ }
    # Power is capped by design: only heat is a fault.
    $2 ~ /^clocks_(event|throttle)_reason_(hw|sw)_thermal_slowdown$/ && $3 == "Active" { hot = "yes" }
    fabric && $2 == "state" { state = $3 } fabric && $2 == "status" { state = state "/" $3 }
    $2 == "/gpu" && uuid { print uuid, "errors", errors; print uuid, "remaps", remaps; print uuid, "hot", hot ? hot : "no"; print uuid, "fabric", state }
  ' "$own/xml" >"$own/gpus"
  if [ $status = 124 ] || [ $status = 137 ]; then fault driver "nvidia-smi does not answer within 30 s"; return; fi
  # Without a driver, or at its own start, there is nothing to compare.
  [ $status != 0 ] && ! grep -q '^gpu ' "$well" && return
  [ $status = 0 ] || fault driver "nvidia-smi ends with status $status"
  compare_gpus
}
compare_gpus() {
  seen=$(cut -d' ' -f1 "$own/gpus" | sort -u)
  had=$(sed -n 's/^gpu //p' "$well")
  # A GPU that was exchanged has another UUID.
  if [ "$(printf '%s\n' "$seen" | grep -c .)" -ge "$(printf '%s\n' "$had" | grep -c .)" ]; then
    [ "$seen" = "$had" ] || { grep -v '^gpu ' "$well"; printf '%s\n' "$seen" | sed 's/^./gpu &/'; } | durable_file "$well" 0600
  else
    for uuid in $had; do
      case "
$seen
" in *"
$uuid
"*) ;; *) fault "lost-$uuid" "GPU $uuid is no longer there" ;; esac
    done
  fi
  [ -f "$own/counts" ] || grep -E ' (errors|remaps) ' "$own/gpus" >"$own/counts"
  while read -r uuid key value; do
    case $key/$value in
      errors/* | remaps/*)
        first=$(sed -n "s/^$uuid $key //p" "$own/counts")
        [ "$value" -le "${first:-$value}" ] || fault "$key-$uuid" "GPU $uuid: uncorrectable $key grew from $first to $value in this boot" ;;
      hot/yes) grep -q "^$uuid hot yes" "$own/gpus.before" 2>/dev/null && fault "hot-$uuid" "GPU $uuid slows down for heat" ;;
      fabric/Completed/Success | fabric/N/A/N/A | fabric/N/A | fabric/ | fabric//) ;;
      # The fabric takes minutes after a boot.
      fabric/*) [ "$up" -lt 600 ] || fault "fabric-$uuid" "GPU $uuid: the fabric's state is $value" ;;
    esac
  done <"$own/gpus"
  cp "$own/gpus" "$own/gpus.before"
}
read_links() { # NVLink's links of each GPU, as nvidia-smi counts them
  timeout -k 2 10 nvidia-smi nvlink --status 2>/dev/null >"$own/links"
  # Cut by the limit of time, it has not printed all of them.
  case $? in 124 | 137) return ;; esac
  awk '
    /^GPU / { gpu = $0; sub(/.*UUID: /, "", gpu); sub(/\).*/, "", gpu); n[gpu] += 0 }
    /Link [0-9]+: [0-9.]+ GB/ { n[gpu]++ }
    END { for (gpu in n) print gpu, n[gpu] }' "$own/links" | while read -r uuid links; do
    had=$(sed -n "s/^links $uuid //p" "$well")
    if [ "$links" -gt "${had:-0}" ]; then { grep -v "^links $uuid " "$well"; echo "links $uuid $links"; } | durable_file "$well" 0600
    elif [ "$links" -lt "${had:-0}" ]; then fault "links-$uuid" "GPU $uuid: $links of $had NVLink links are up"; fi
  done
}
if [ $((up - $(cat "$own/asked" 2>/dev/null || echo -999))) -ge 110 ] && command -v nvidia-smi >/dev/null; then
  printf '%s\n' "$up" >"$own/asked"
  mv "$own/faults.new" "$own/faults.kernel" && : >"$own/faults.new"
  if still_asking; then fault driver "nvidia-smi still hangs, and no signal ends it"
  else
    read_gpus
    [ $status != 0 ] || read_links
  fi
  cp "$own/faults.new" "$own/faults.gpus"
  cat "$own/faults.kernel" >>"$own/faults.new"
elif [ -f "$own/faults.gpus" ]; then cat "$own/faults.gpus" >>"$own/faults.new"; fi

# A port that has carried traffic once and is down now: a state, however long ago it went.
for port in /sys/class/infiniband/*/ports/*; do
  [ -r "$port/state" ] || continue
  name=${port#/sys/class/infiniband/}
  read -r _ state _ <"$port/state"
  name=${name%%/*}/${name##*/}
  case $state in
    ACTIVE) grep -qx "port $name" "$well" || { cat "$well"; echo "port $name"; } | durable_file "$well" 0600 ;;
    *) ! grep -qx "port $name" "$well" || fault "port-$name" "port $name is $state" ;;
  esac
done

sort -u "$own/faults.new" >"$own/faults.now"
# What was a fault before a boot, which empties /run, may be one no longer.
[ -f "$own/faults" ] || cat "$last" >"$own/faults" 2>/dev/null
while read -r key text; do
  grep -q "^$key " "$own/faults" || tell gpu "gpu-$key" "$text"
done <"$own/faults.now"
while read -r key text; do
  grep -q "^$key " "$own/faults.now" || tell_resolved gpu "gpu-$key" "no longer: $text"
done <"$own/faults"
mv "$own/faults.now" "$own/faults"
cmp -s "$own/faults" "$last" || durable_file "$last" 0600 <"$own/faults"
count=$(grep -c . "$own/faults")
state=ok since=$up
[ "$count" = 0 ] || state=fault
[ "$(sed -n 's/^state=//p' "$shown" 2>/dev/null)" != $state ] || since=$(sed -n 's/^since=//p' "$shown" | tr -cd 0-9)
signs=$(cut -d' ' -f2- "$own/faults" | tr '\n' ';' | sed 's/;$//; s/;/; /g' | cut -c1-600)
printf '%s\n' "looked=$up" "state=$state" "since=${since:-$up}" "faults=$count" "signs=$signs" >"$shown.new" && chmod 0644 "$shown.new" && mv -f "$shown.new" "$shown"
[ "$count" = 0 ] || printf '%s\n' "$signs"
exit 0
