# `own_error`: why an engine died, by its own journal.
# What an error line of an engine's own processes looks like, once its prefixes are gone: the first pattern that a line
# matches says its weight, and of the heaviest the last one is printed. 0: a line that points at another, or follows from it.
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
    # systemd begins another start: what an earlier one died of is another matter, unless this one has only begun.
    /^Starting (rackwright-|LLM endpoint )/ { if (message != "") before = best " " message; best = -1; message = ""; ended = traced = chained = served = 0; next }
    /^rackwright-[^ ]*: (Main process exited|Control process exited|Failed with result)/ { ended = 1 }
    more > 0 && /[^ ]/ { said = $0; sub(/^\([^)]*\) /, "", said); sub(/^ +/, "", said); message = message " " said; more--; next }
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
      if (found >= best) { best = found; message = tag said; more = said ~ /validation errors? for/ ? 2 : 0 }
    }
    END { if (message != "") printf "%d %s\n", best, message; else if (!ended && before != "") print before }'
}
