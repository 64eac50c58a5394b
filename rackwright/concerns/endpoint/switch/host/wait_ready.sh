# Wait until an endpoint's unit is active, which means that /health answered 200; tell at once when it died.
# Parameters: unit load_timeout missing (a file in which the head of a group names whom it waits for); asked (microseconds
# since boot, or nothing): when start.sh has told it to start.
# Together with --since, journalctl's own --lines would count from the beginning.
last_lines() { journalctl --unit "$unit" --since "$since" --no-pager --output cat 2>/dev/null | tail -n "$1" | cut -c1-"$2"; }
# Before it starts a container, the unit removes one of that name; docker says that there is none, which looks like a fault.
lacks() { # of several hosts that serve together, who has not come
  if [ -s "$missing" ]; then printf '%s' ": it waits for $(cut -c1-200 "$missing")"; fi
}
news() {
  if [ -s "$missing" ]; then printf '%s' "waiting for $(cut -c1-100 "$missing")"; return; fi
  said=$(last_lines 1 100)
  case $said in *"No such container"*) said="its container starts" ;; esac
  printf '%s' "$said"
}
# After a power cut dockerd can hold the port of a container that is gone, until it is restarted itself:
# https://github.com/moby/moby/issues/25981
kept_port() {
  journalctl --sync 2>/dev/null || true
  held=$(last_lines 30 300 | sed -n 's/.*Bind for [^ ]*:\([0-9][0-9]*\) failed: port is already allocated.*/\1/p' | tail -n 1)
  [ -n "$held" ] && others=$(timeout 20 docker ps --quiet --filter "publish=$held") && [ -z "$others" ] && echo "$held"
}
held_by_dockerd() {
  if held=$(kept_port); then
    printf '%s' ": dockerd holds port $held and no container has it, as after a power cut (github.com/moby/moby/issues/25981); next: systemctl restart docker on this host, then run the same command again"
  fi
}
# What an error line of an engine's own processes looks like, once its prefixes are gone: the first pattern that a line
# matches says its weight, and of the heaviest the last one is told. 0: a line that points at another, or follows from it.
# vLLM: its core and workers, before the API server's traceback; SGLang: its scheduler, before the server's "sigquit";
# TensorRT-LLM: its ranks, before the proxy's "Executor worker returned error".
error_weights() {
  cat <<'END'
0 Traceback \(most recent call last\):$|[Ss]ee (the )?(root cause|stack trace)|for( the)? root cause|error messages above
0 Engine core initialization failed|WorkerProc initialization failed|Worker failed with error|Executor worker (returned error|died)
0 [Rr]eceived sigquit|SIGQUIT received|No such container|leaked|Exception ignored|Deprecat
0 ^(KeyboardInterrupt|SystemExit|EOFError|BrokenPipeError|ConnectionResetError|[A-Za-z_.]*(EngineDeadError|CancelledError|ZMQError))(:|$)
70 ([Oo]ut of memory|OutOfMemory|No available memory|Not enough memory|Free memory on device)
30 (DistBackendError|DistNetworkError|DistStoreError|ncclRemoteError|ncclInternalError|Connection (reset|closed) by)
60 ^(\[RANK [0-9]+\] )?\[E\] |^\[TensorRT-LLM\]\[ERROR\]
50 ^([A-Za-z_][A-Za-z0-9_]*\.)*[A-Za-z0-9_]*(Error|Exception|Failure|OutOfResources)(: |:?$)
50 ^([a-z_0-9]+\.)+[A-Z][A-Za-z]+: |^[a-zA-Z_.0-9 -]+: error: |^Error: 
50 error while loading shared libraries|cannot open shared object file|^ *what\(\): |Fatal Python error|^exec: 
50 ^(CUDA|NCCL|Cuda|Xid)[A-Za-z ]* (error|failure)
45 ([Ss]egmentation fault|Segfault|Bus error|Illegal instruction|terminate called)
20 (died unexpectedly|scheduler (is dead|died)|exit ?code:? *-?9)
10 Main process exited, code=[a-z]+, status=(134|135|137|139)
END
}
own_error() { # in a journal on standard input: a line that says why an engine's own process died, with its weight
  weights=$(error_weights) awk '
    BEGIN {
      many = split(ENVIRON["weights"], rules, "\n")
      for (i = 1; i <= many; i++) { cut = index(rules[i], " "); weight[i] = substr(rules[i], 1, cut - 1) + 0; rule[i] = substr(rules[i], cut + 1) }
    }
    # systemd begins another start: what an earlier one died of is another matter.
    /^Starting (rackwright-|LLM endpoint )/ { best = -1; told = ""; traced = chained = served = 0; next }
    more > 0 && /[^ ]/ { said = $0; sub(/^\([^)]*\) /, "", said); sub(/^ +/, "", said); told = told " " said; more--; next }
    {
      said = $0; gsub(/\033\[[0-9;]*[A-Za-z]/, "", said); sub(/\r$/, "", said)
      sub(/^\[[0-9]+,[0-9]+\]<std(err|out)>: ?/, "", said)
      tag = ""; ours = theirs = 0
      if (match(said, /^\([A-Za-z_]+[A-Za-z0-9_]*( [a-z]+=[0-9.]+,?)*\) /)) {
        tag = substr(said, 1, RLENGTH); said = substr(said, RLENGTH + 1)
        if (tag ~ /^\((APIServer|ApiServer)/) theirs = 1
        else ours = 1
      }
      if (match(said, /^\[rank[0-9]+\]: ?/)) { tag = substr(said, 1, RLENGTH); said = substr(said, RLENGTH + 1); ours = 1 }
      if (said ~ /^(INFO|WARNING|DEBUG) /) next
      if (match(said, /^(ERROR|CRITICAL) [0-9-]+ [0-9:.]+ (\[[^]]*\]|[a-z_]+\.py:[0-9]+\]) ?/)) {
        if (substr(said, 1, RLENGTH) ~ /(core|gpu_worker|gpu_model_runner|multiproc_executor|multiproc_worker_utils|worker_base|worker)\.py:/) ours = !theirs
        said = substr(said, RLENGTH + 1)
      }
      sub(/^\[[0-9\/-]+[- T][0-9:.]+[^]]*\] (\[TRT-LLM\] )?/, "", said)
      if (said ~ /^(\[RANK [0-9]+\] )?\[[IWDV]\] /) next
      if (said ~ /hit an exception/) { traced = 1; next }
      if (chained && said ~ /^(During handling of|The above exception was)/) { traced = 1; next }
      if (said ~ /[Rr]eceived sigquit|SIGQUIT received/) { served = 1; traced = chained = 0 }
      for (i = 1; i <= many && said !~ rule[i]; i++) continue
      if (i > many) next
      found = weight[i]
      # A line of prose may name memory or a process; only one that is shaped like an error counts as the engine.s.
      shaped = said ~ /^([A-Za-z_][A-Za-z0-9_]*\.)*[A-Za-z0-9_]*(Error|Exception|Failure|OutOfResources)(: |:?$)/ || said ~ /^(\[RANK [0-9]+\] )?\[E\] |^\[TensorRT-LLM\]\[ERROR\]/
      if (found == 70 && !shaped && said !~ /CUDA out of memory/) next
      if (found == 0) next
      if (ours || traced) found += 10
      if (theirs || (served && !ours && !traced)) found = found > 40 ? 40 : found
      if (traced && shaped) { traced = 0; chained = 1 }
      if (found >= best) { best = found; told = tag said; more = said ~ /validation errors? for/ ? 2 : 0 }
    }
    END { if (told != "") printf "%d %s\n", best, told }'
}
killed_for_memory() { # the last process of this host that the kernel has killed for want of memory since this start
  journalctl --boot --identifier kernel --since "$since" --no-pager --output cat 2>/dev/null |
    sed -n 's/.*[Oo]ut of memory: Killed process [0-9]* (\([^)]*\)).*/the kernel killed \1 for want of memory/p' | tail -n 1
}
why_it_died() {
  told=$(last_lines 4000 2000 | own_error)
  if [ "${told%% *}" -le 20 ] 2>/dev/null || [ -z "$told" ]; then
    oom=$(killed_for_memory)
    [ -z "$oom" ] || told="99 $oom"
  fi
  printf '%s' "${told#* }" | cut -c1-400
}
# What Docker said when it could not start the container at all; nothing when the server itself ended. What the server prints
# is no word of Docker's, so the status of `docker run` must say so, too.
refused() {
  case $status in 125 | 126 | 127) ;; *) return ;; esac
  last_lines 60 600 | sed -n '/^docker: /p; /^unknown \(shorthand \)\{0,1\}flag: /p; /^invalid argument .* flag: /p' | tail -n 1
}
whose() { # Docker's words: a request that Docker does not understand is the release's, all else is the host's
  case $1 in
    *'executable file not found'* | *'exec: "'* | *'conflicting options'* | *'nvalid CapAdd'* | *'nvalid CapDrop'* | *'invalid option'* | *'invalid argument "'*) echo start ;;
    'docker: Error response from daemon'* | 'docker: Cannot connect'* | 'docker: error during connect'*) echo docker ;;
    *) echo start ;;
  esac
}
chains_gone() {
  command -v docker_lacks >/dev/null || return 0
  docker_lacks "$(timeout 25 docker info --format '{{json .}}' 2>/dev/null)" "$(systemctl show --property=MainPID --value docker.service)" |
    tr '\n' ',' | sed 's/,$//; s/,/, /g'
}
give_up() {
  # What a dying server said last reaches the journal a little after its end.
  sleep 1
  own=$(why_it_died) held=$(held_by_dockerd) kind=start died=$1
  said=$(refused)
  if [ -n "$said" ]; then
    own='' kind=$(whose "$said") gone=$(chains_gone)
    died="Docker could not start the container: $(printf '%s' "${said#docker: }" | sed 's/^Error response from daemon: //; s/ ([0-9a-f]\{64\})//' | cut -c1-300)"
    [ -z "$gone" ] || held="$held: Docker's chains are gone ($gone); next: systemctl restart docker on this host, then run the same command again"
  fi
  why="$died${own:+: $own}$held" head="$died$held"
  taken=$(listener_stranger)
  # Whatever the server says of its end: it could not have the port.
  [ -z "$taken" ] || { why="$taken ($died)"; head=$why; kind=stranger; }
  printf '%s\n' "$why" >"${reason:-/dev/null}"
  printf '%s\n' "$kind" >"${cause:-/dev/null}"
  printf '%s\n' "$head;${own:+ its own last error, then} its last lines:" ${own:+"$own"}
  last_lines 30 300
  exit 1
}
: "${since:=$(date -d '10 minutes ago' '+%F %T')}"
look() { # at the unit, by one question
  active='' sub='' job='' result='' began='' status=
  while IFS='=' read -r key value; do
    case $key in
      ActiveState) active=$value ;; SubState) sub=$value ;; Job) job=$value ;; Result) result=$value ;;
      ExecMainStartTimestampMonotonic) began=$value ;; ExecMainStatus) status=$value ;;
    esac
  done <<END
$(systemctl show --property=ActiveState,SubState,Job,Result,ExecMainStartTimestampMonotonic,ExecMainStatus "$unit")
END
}
quarters=0 waited=0
pause() { # four looks a second in the first minute, then one: whoever loads for longer is not asked that often
  if [ $quarters -lt 240 ]; then sleep 0.25; quarters=$((quarters + 1)); else sleep 1; quarters=$((quarters + 4)); fi
  waited=$((quarters / 4))
}
while :; do
  look
  case "$active/$sub/${job:-0}" in
    active/running/*) event progress "ready after $waited s"; exit 0 ;;
    deactivating/* | failed/* | activating/auto-restart*)
      [ "${began:-0}" -lt "${asked:-0}" ] && start_anew && pause && continue
      command -v free_port >/dev/null && free_port && pause && continue
      if [ "$result" = timeout ]; then give_up "not ready within its load_timeout$(lacks)"; fi
      give_up "the server died after $waited s" ;;
    inactive/*/0) give_up "the server ended after $waited s" ;;
  esac
  if [ $waited -ge "$load_timeout" ]; then give_up "not ready after $waited s$(lacks)"; fi
  pause
  [ $((quarters % 20)) = 0 ] && event progress "loading, $waited s: $(news)"
done
