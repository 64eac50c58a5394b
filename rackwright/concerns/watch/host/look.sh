# Look at each endpoint that this host watches: does its engine still make steps, and does it answer?
# Parameters: watched (folder) states (folder) homes (of endpoints) paused (file) drained (file) state_root (folder)
# sent (folder: a file for each event that the sender has sent, and not its end).
# Comes after holders.sh, listener.sh, tell.sh and open_requests.sh. What was found is a file of KEY=VALUE lines for each endpoint.
# A look at an engine that works is two programs: curl and awk. All else is asked once the counter of steps stands still.
read -r now _ </proc/uptime
now=${now%%.*}
nl='
'
largest=16777216 # Bytes of metrics that are read: a broken engine may send them without an end.
stale=300 # Seconds after which an earlier look says nothing: the looks were paused, or held up.

figures='
  BEGIN { n = split(ENVIRON["steps_names"], step, " "); m = split(ENVIRON["moves_names"], move, " "); sleep_name = ENVIRON["sleep_name"]
    for (i = 1; i <= n; i++) wanted[step[i]]; for (i = 1; i <= m; i++) wanted[move[i]]
    http = code = 0; connect = 0; asleep = "no"; steps = "-"; pulse = "" }
  /^#http / { http = $2; connect = $3; next }
  /^#exit / { code = $2; next }
  /^#/ || NF < 2 { next }
  { name = $1; sub(/\{.*/, "", name) }
  name in wanted { sum[name] += $NF; seen[name] }
  sleep_name != "" && name == sleep_name && index($0, ENVIRON["sleep_awake"]) { rows++; awake += $NF }
  END { for (i = n; i; i--) if (step[i] in seen) steps = sprintf("%.6f", sum[step[i]])
    for (i = 1; i <= m; i++) pulse = pulse sprintf("%.9g,", sum[move[i]])
    if (rows && !awake) asleep = "yes"
    print code, http, (connect > 0 ? "connected" : "none"), steps, (m ? pulse : "-"), asleep }'

# What arithmetic of sh takes for sure: no leading zero, which makes an octal number, and nothing that is too large for it.
number() { case $1 in '' | *[!0-9]* | 0?* | ???????????*) return 1 ;; esac; }

config() { # sets what the deploy wrote of the endpoint
  kind='' steps_names='' moves_names='' sleep_name='' sleep_awake='' compilers='' metrics='' health=/health model=''
  after=120 full_after=600 load=1800 fresh=600 batch=0 act=tell
  while IFS='=' read -r key value; do
    case $key in
      engine) kind=$value ;; steps) steps_names=$value ;; moves) moves_names=$value ;; sleep) sleep_name=$value ;;
      awake) sleep_awake=$value ;; compilers) compilers=$value ;; metrics) metrics=$value ;; health) health=$value ;;
      model) model=$value ;; after) after=$value ;; full_after) full_after=$value ;; load) load=$value ;;
      fresh) fresh=$value ;; batch) batch=$value ;; act) act=$value ;;
    esac
  done <"$watched/$endpoint"
  # A file that was damaged must not make a look find a hang.
  number "$after" || after=120
  number "$full_after" || full_after=600
  number "$load" || load=1800
  number "$fresh" || fresh=600
  number "$batch" || batch=0
  export steps_names moves_names sleep_name sleep_awake
}

before() { # sets what the last look found
  was_state='' since='' was_steps='' was_pulse='' id='' pid='' ready='' looked=''
  still_since='' unanswered_since='' silent_since='' refused_since='' unavailable_since='' unread_since='' fired=''
  [ ! -f "$file" ] || while IFS='=' read -r key value; do
    case $key in
      state) was_state=$value ;; since) since=$value ;; steps) was_steps=$value ;; pulse) was_pulse=$value ;;
      id) id=$value ;; pid) pid=$value ;; ready) ready=$value ;; looked) looked=$value ;; fired) fired=$value ;;
      still_since) still_since=$value ;; unanswered_since) unanswered_since=$value ;; silent_since) silent_since=$value ;;
      refused_since) refused_since=$value ;; unavailable_since) unavailable_since=$value ;; unread_since) unread_since=$value ;;
    esac
  done <"$file"
  for key in since ready looked still_since unanswered_since silent_since refused_since unavailable_since unread_since; do
    eval "value=\$$key"
    number "$value" && [ "$value" -le "$now" ] || eval "$key="
  done
  [ -n "$looked" ] && [ $((now - looked)) -le $stale ] || { works; unavailable_since=''; }
}

works() { # nothing that an earlier look has seen counts any longer, but for a 503, which only another answer ends
  still_since='' unanswered_since='' silent_since='' refused_since='' unread_since=''
}

settle() { # STATE SIGNS: write what was found, and act by it
  state=$1 signs=$2
  [ "$state" = "$was_state" ] && number "$since" || since=$now
  would=
  # Without a counter a hang is a guess, and a death is certain.
  case $state/$uncounted in hung/ | dead/*) may=yes ;; *) may= ;; esac
  [ "$act" != tell ] || [ -z "$may" ] || would=restart
  due
  printf '%s\n' "looked=$now" "state=$state" "since=$since" "signs=$signs" "steps=$steps" "pulse=$pulse" "open=$open" "bytes=$bytes" \
    "still_since=$still_since" "unanswered_since=$unanswered_since" "silent_since=$silent_since" "refused_since=$refused_since" \
    "unavailable_since=$unavailable_since" "unread_since=$unread_since" "would=$would" "id=$id" "pid=$pid" "ready=$ready" "fired=$fired" \
    >"$file.new" && mv "$file.new" "$file"
}

due() { # say once that it hangs or has died, and that it has come back; start what restarts it
  case $state in
    hung | dead)
      if [ "$state" = hung ]; then event=hang verb=hangs; else event=dead verb="has died"; fi
      [ -z "$would" ] || event=would-restart
      if [ "$fired" != "$event" ]; then
        [ -z "$fired" ] || tell_resolved "$fired" "$fired-$endpoint" "endpoint $endpoint: it is now another event, $event"
        tell "$event" "$event-$endpoint" "endpoint $endpoint $verb: $signs${would:+; with watch.act: restart it would be restarted}"
        fired=$event
        printf '%s\n' "endpoint $endpoint $verb: $signs"
      fi
      [ "$act" != restart ] || [ -z "$may" ] || systemctl start --no-block "rackwright-act@$endpoint.service" 2>/dev/null ;;
    serving | idle)
      [ -z "$fired" ] || tell_resolved "$fired" "$fired-$endpoint" "endpoint $endpoint answers again"
      case $was_state in serving | idle) ;; *) sent_before ;; esac
      fired= ;;
  esac
}

sent_before() { # what was sent before a boot, which ends this memory, or before a run proved a sick endpoint
  for event in hang dead would-restart sick; do
    [ "$event" != "$fired" ] && [ -e "$sent/$event-$endpoint" ] || continue
    tell_resolved "$event" "$event-$endpoint" "endpoint $endpoint answers again"
  done
}

in_hand() { # sets `why` where an operator, a run or a restart by this watch has the endpoint in hand
  why=
  until=
  [ ! -r "$paused" ] || read -r until <"$paused"
  if number "$until" && [ "$now" -lt "$until" ]; then why="the watch is paused"; return 0; fi
  if [ -e "$drained" ]; then why="the host is drained"; return 0; fi
  if [ -e "$home/trial" ] || [ -e "$state_root/dockerd/trial" ]; then why="a release is on trial"; return 0; fi
  for cgroup in /sys/fs/cgroup/system.slice /sys/fs/cgroup/systemd/system.slice; do
    for job in "switch-$endpoint" "rest-$endpoint" dockerd; do
      [ ! -d "$cgroup/rackwright-job-$job.service" ] || { why="a run works on it ($job)"; return 0; }
    done
    [ ! -d "$cgroup/system-rackwright\\x2dact.slice/rackwright-act@$endpoint.service" ] || { why="the watch restarts it"; return 0; }
  done
  [ -L "$home/current" ] || { why="no release is there"; return 0; }
  return 1
}

container() { # sets `id`, `pid` and `ready`; where it does not run, settles that and fails
  if [ -n "$id" ] && number "$pid" && number "$ready"; then
    belongs "$pid"
    [ "$inside" != "$id" ] || return 0
  fi
  last=$id id='' pid='' ready=''
  active='' sub='' result='' status='' restart='' entered=''
  while IFS='=' read -r key value; do
    case $key in
      ActiveState) active=$value ;; SubState) sub=$value ;; Result) result=$value ;; ExecMainStatus) status=$value ;;
      Restart) restart=$value ;; ActiveEnterTimestampMonotonic) entered=$value ;;
    esac
  done <<END
$(systemctl show --property=ActiveState,SubState,Result,ExecMainStatus,Restart,ActiveEnterTimestampMonotonic "rackwright-$endpoint.service" 2>/dev/null)
END
  case $active/$sub in
    failed/*) settle dead "its unit has failed ($result)"; return 1 ;;
    inactive/*)
      # With its own Restart=always only a stop by hand ends here.
      if [ "$restart" != always ] && [ "$status" = 0 ]; then settle dead "it has ended with exit 0"; else settle skipped "it was stopped"; fi
      return 1 ;;
    active/*) ;;
    *) works; unavailable_since=''; settle loading "its unit is $active ($sub)"; return 1 ;;
  esac
  listener_name=rackwright-$endpoint
  listener_container
  if [ "$running $label" != "true $endpoint" ]; then
    id='' pid=''
    if [ -z "$said" ]; then settle skipped "Docker does not answer"; return 1; fi
    refused "its unit is active and its container does not run"
    return 1
  fi
  ready=$now
  # Its microseconds have more digits than counts here for a number, three hours after a boot.
  entered=${entered%??????}
  ! number "$entered" || ready=$entered
  [ "$last" = "$id" ] || { works; unavailable_since='' was_steps='' was_pulse=''; rm -f "$file.connections"; }
  return 0
}

refused() { # WHY: twice in a row is dead, since one may be the moment of an end
  if [ -n "$refused_since" ]; then settle dead "$1"; else refused_since=$now; settle stalled "$1"; fi
}

# Requests without a key, in the container's network. The limits are those of one look, so that no check behind it waits.
ask() {
  if [ "/proc/$pid/ns/net" -ef /proc/self/ns/net ]; then
    command curl -q --silent --noproxy '*' --connect-timeout 2 --max-time 3 "$@"
  else
    nsenter --net="/proc/$pid/ns/net" curl -q --silent --noproxy '*' --connect-timeout 2 --max-time 3 --connect-to ::127.0.0.1: "$@"
  fi
}

scrape() { # sets code, http, connect, steps, pulse, asleep
  code=0 http=404 connect=none steps=- pulse=- asleep=no
  [ -n "$metrics" ] || return 0
  read -r code http connect steps pulse asleep <<END
$({ ask --write-out '\n#http %{http_code} %{time_connect}\n' "$base$metrics"; printf '#exit %s\n' "$?"; } | head -c $largest | awk "$figures")
END
}

count() { # sets `open`, `streams` and `bytes`: requests, never by the engine's own gauge, and answers that arrive
  read -r open all streams bytes <<END
$(nsenter --net="/proc/$pid/ns/net" ss -tinHO state established "sport = :$port" 2>/dev/null |
    awk -v looks=0 -v connections="$file.connections" "$requests_of")
END
}

own_network() { # opens it as 9, where the container has one: no other process of the host can listen in there
  [ -r "/proc/$pid/ns/net" ] && command exec 9<"/proc/$pid/ns/net" || return 1
  # Opened before it is looked at whose it is: the number may be another process's by now.
  belongs "$pid"
  [ "$inside" = "$id" ] && [ ! /proc/self/fd/9 -ef /proc/self/ns/net ]
}

# One token after a prompt of several: it may be the first request since a start, and vLLM 0.32.0 on a CPU with AMX dies of a
# first one of fewer than five tokens (a vector product asks the kernel for no tiles, and its attention then uses them).
# The key goes only to a listener that is this endpoint's container: on the host's own network listener.sh finds out.
probe() ( # prints the status, or the word `refused`, `taken` or `late`
  listener_home=$home listener_name=rackwright-$endpoint listener_network=own
  own_network || listener >/dev/null 2>&1 || { case $listener_why in *'does not listen'*) echo refused ;; *) echo taken ;; esac; exit; }
  key=
  while IFS='=' read -r name value; do [ "$name" != KEY ] || key=$value; done 2>/dev/null <"$home/binding"
  [ -n "$key" ] && [ -f "$home/keys/$key" ] || key=
  set -- -q --silent --noproxy '*' --connect-timeout 2 --max-time 4 --output /dev/null --write-out '%{http_code}' \
    ${key:+--header "@$home/keys/$key"} --header 'Content-Type: application/json' --data "{\"model\":\"$model\",\"prompt\":\"1 2 3 4 5 6 7 8\",\"max_tokens\":1}"
  if [ "$listener_network" = own ]; then
    answer=$(nsenter --net=/proc/self/fd/9 curl --connect-to ::127.0.0.1: "$@" "$base/v1/completions")
  else
    answer=$(command curl "$@" "$base/v1/completions")
  fi
  case $?/$answer in 7/*) echo refused ;; */000) echo late ;; *) echo "$answer" ;; esac
)

compiling() { # sets `compiler`: what compiles in the container's control group
  compiler=
  [ -n "$compilers" ] || return 1
  while IFS=: read -r _ controllers path; do
    case $controllers in '' | *pids* | name=systemd) ;; *) continue ;; esac
    for procs in /sys/fs/cgroup"$path"/cgroup.procs /sys/fs/cgroup/*"$path"/cgroup.procs /sys/fs/cgroup"$path"/*/cgroup.procs; do
      [ -r "$procs" ] || continue
      while read -r process; do
        comm=
        [ ! -r "/proc/$process/comm" ] || read -r comm <"/proc/$process/comm"
        case " $compilers " in *" ${comm:-?} "*) compiler=$comm; return 0 ;; esac
      done <"$procs"
    done
  done 2>/dev/null <"/proc/$pid/cgroup"
  return 1
}

gpus_idle() { # by the driver, for the endpoint's own GPUs; fails where they work, or where it does not say
  gpus=$(grep -o 'GPU-[0-9a-f-]*' "$home/binding" 2>/dev/null | tr '\n' ',')
  use=$(timeout 3 nvidia-smi ${gpus:+--id="${gpus%,}"} --query-gpu=utilization.gpu --format=csv,noheader,nounits 2>/dev/null) || return 1
  for each in $use; do [ "$each" = 0 ] || return 1; done
  [ -n "$use" ]
}

look_at() { # ENDPOINT
  endpoint=$1 file=$states/$1 home=$homes/$1
  steps='' pulse='' open='' bytes='' uncounted='' why=''
  config
  before
  steps=$was_steps pulse=$was_pulse
  if in_hand; then works; unavailable_since=''; settle skipped "$why"; return; fi
  container || return
  base=
  [ ! -r "$home/current/health-url" ] || read -r base <"$home/current/health-url"
  base=${base%/health}
  # Of what serves, which a rollback may have moved since the deploy.
  port=${base##*:}
  scrape
  case $code/$http/$connect in
    7/*) steps=$was_steps pulse=$was_pulse; refused "its port refuses connections"; return ;;
    28/*/none) works; steps=$was_steps pulse=$was_pulse; settle busy "a connection times out: the host is under load"; return ;;
    0/200/*) unread_since='' refused_since='' ;;
    0/404/*) steps=- refused_since='' ;;
    *) steps=unread refused_since='' unread_since=${unread_since:-$now} ;;
  esac
  if [ "$asleep" = yes ]; then works; settle idle "the engine sleeps"; return; fi
  case $steps in
    unread) still_since=${still_since:-$now}; steps=$was_steps pulse=$was_pulse ;;
    -) uncounted=yes steps='' ;;
    *)
      if [ "$steps $pulse" != "$was_steps $was_pulse" ]; then
        works
        if [ -n "$was_steps" ]; then
          if [ -n "$unavailable_since" ]; then
            count
            [ "${streams:-0}" = 0 ] || unavailable_since=''
          fi
          answer=
          # Its own probe is a step, too.
          [ -z "$unavailable_since" ] || available || return
          settle serving "it makes steps"
          return
        fi
        still_since=$now # A first value proves no step.
      fi
      still_since=${still_since:-${looked:-$now}} ;;
  esac
  judge
}

judge() { # the counter stands still, or there does not exist, or it was not to be read
  count
  if [ "${streams:-0}" != 0 ]; then
    works
    unavailable_since=''
    settle serving "answers arrive on $streams of its connections"
    return
  fi
  silent_since=${silent_since:-$now}
  answer=$(probe)
  case $answer in
    2*)
      works
      # Balancers go by /health, so that no client reaches an engine that answers 503 there.
      available || return
      if [ "${open:-0}" = 0 ]; then settle idle "a probe of one token is answered"; else settle serving "a probe of one token is answered"; fi
      return ;;
    refused) refused "its port refuses connections"; return ;;
    taken) works; settle unmeasured "another process has its port, so no probe is sent"; return ;;
    4*) works; settle unmeasured "a probe of one token is answered with $answer"; return ;;
  esac
  unanswered_since=${unanswered_since:-$now}
  available || return
  if compiling; then works; settle busy "$compiler compiles in its container"; return; fi
  if [ "$now" -lt $((ready + fresh)) ]; then works; settle busy "no probe is answered, in its first $fresh s after ready"; return; fi
  weigh
}

available() { # 503 for longer than a load is dead, whatever else is so; fails once that is settled
  if [ "$http" != 503 ] && [ "$answer" != 503 ]; then
    http=$(ask --output /dev/null --write-out '%{http_code}' "$base$health")
  fi
  if [ "$http" != 503 ] && [ "$answer" != 503 ]; then unavailable_since=''; return 0; fi
  unavailable_since=${unavailable_since:-$now}
  [ $((now - unavailable_since)) -gt "$load" ] || return 0
  settle dead "it has answered 503 for $((now - unavailable_since)) s, longer than a load may take"
  return 1
}

weigh() { # how long counter, probe and bytes have been still together, and how long that may be
  begun=$unanswered_since
  for one in "$still_since" "$silent_since"; do ! number "$one" || [ "$one" -le "$begun" ] || begun=$one; done
  seconds=$((now - begun))
  still="its counter of steps stands still, and a probe of one token is not answered, for $seconds s"
  limit=$full_after
  if [ -n "$uncounted" ]; then
    if ! gpus_idle; then works; settle unmeasured "no probe is answered; it has no counter of steps, and its GPUs are not idle"; return; fi
    still="no probe is answered, no byte arrives and its GPUs are idle for $seconds s; it has no counter of steps"
  elif [ -n "$unread_since" ]; then still="neither its metrics nor a probe of one token are answered for $seconds s"
  elif [ "$batch" = 0 ] && [ "${open:-0}" = 0 ] || [ "${open:-0}" -lt "$batch" ]; then limit=$after
  else still="$still; requests open: $open, no byte for $((now - silent_since)) s"; fi
  if [ "$seconds" -lt "$limit" ]; then settle stalled "$still, of $limit"; else settle hung "$still"; fi
}

[ -d "$states" ] || { rm -f "$states"; mkdir -p "$states"; }
for file in "$states"/*; do
  name=${file##*/}
  [ ! -d "$file" ] || rm -rf "$file"
  [ ! -f "$file" ] || [ -f "$watched/${name%%.*}" ] || rm -f "$file"
done
looks=
for file in "$watched"/*; do
  [ -f "$file" ] || continue
  look_at "${file##*/}" &
  looks="$looks $!"
done
for one in $looks; do wait "$one"; done
exit 0
