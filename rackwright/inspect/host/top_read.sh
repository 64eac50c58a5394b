# Readings of a host for `rackwright top`, one for each word of standard input: `look`, or `status`, which first reads what
# `rackwright status` does. Each ends with a line `over`. The shell stays, so a reading costs neither a login nor a sudo.
# Parameters: once (one of these words, in place of standard input); status (the script of `rackwright status`); endpoints
# ("NAME HEALTH METRICS TOKENS RUNNING WAITING" lines: two URLs and three names of metrics, `-` where it is missing); marks states
# acts (folders) paused drained lease (files) jobs (folder).
# Prints "KEY VALUE" lines. No key is sent: what an engine shows only with one is not read.
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

small_files() { # prints "file PATH LINE" for the beginning of each; of a history its last line
  set --
  for file in "$marks"/* "$states"/* "$acts"/acts-* "$paused" "$drained" "$lease"; do
    case ${file##*/} in *.*) continue ;; esac # what a look keeps for itself
    [ ! -f "$file" ] || set -- "$@" "$file"
  done
  [ $# = 0 ] || awk '
    FILENAME ~ /\/acts-[^\/]*$/ { last[FILENAME] = $0; next }
    FNR <= 30 && ++n <= 600 { print "file " FILENAME " " substr($0, 1, 500) }
    END { for (name in last) print "file " name " " substr(last[name], 1, 500) }' "$@"
}

running_jobs() { # prints "job NAME BEGAN PROGRESS": the second of uptime, and the last progress event in base64
  for job in "$jobs"/*/; do
    job=${job%/}
    [ -f "$job/began" ] && [ ! -e "$job/status" ] && [ ! -e "$job/ended" ] || continue
    began=; read -r began <"$job/began"
    progress=; [ ! -f "$job/events" ] || progress=$(awk '$3 == "progress" { last = $4 } END { print substr(last, 1, 2000) }' "$job/events")
    printf '%s\n' "job ${job##*/} ${began:-0} $progress"
  done
}

engine() { # its health, then its counters: one curl for both; a broken engine may send them without an end
  if [ "$3" = - ]; then
    curl --silent --noproxy '*' --max-time 5 --output /dev/null --write-out 'code %{http_code}\n' "$2"
  else
    # Without an answer to the first the second would only wait once more.
    curl --fail-early --silent --noproxy '*' --max-time 5 --output /dev/null --write-out 'code %{http_code}\n' "$2" \
      --next --silent --noproxy '*' --max-time 5 "$3"
  fi | head -c 16777216 | awk -v name="$1" -v tokens="$4" -v running="$5" -v waiting="$6" '
    function is(metric) { return index($0, metric) == 1 && substr($0, length(metric) + 1, 1) ~ /[{ ]/ }
    NR == 1 && $1 == "code" { print "engine " name " code " $2; next }
    is(tokens) { sum["tokens"] += $NF }
    is(running) { sum["running"] += $NF }
    is(waiting) { sum["waiting"] += $NF }
    END { for (key in sum) printf "engine %s %s %.3f\n", name, key, sum[key] }'
}

look() {
  read -r uptime _ </proc/uptime
  printf '%s\n' "uptime $uptime"
  small_files
  running_jobs
  printf '%s\n' "$endpoints" | while read -r name health metrics tokens running waiting; do
    [ -z "$name" ] || engine "$name" "$health" "$metrics" "$tokens" "$running" "$waiting"
  done
  echo over
}

# `status` ends with an exit of its own.
answer() {
  [ "$1" != status ] || (eval "$status")
  look
}

if [ -n "$once" ]; then
  answer "$once"
else
  while read -r asked; do answer "$asked" </dev/null; done
fi
exit 0
