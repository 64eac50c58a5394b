#!/bin/bash
# Run this host's part of an endpoint that several hosts serve together: they start and stop as one.
# Arguments: the command line of its container. From the binding: RANK HEAD ADDRESS MEMBERS, and KEY where clients need
# one. Beside it: `group`, `line-head`.
#
# The head listens for one lifeline of each other member, starts when all of them wait at its own release, and gives up as
# soon as one of them ends. The others wait at their line for the head's word, start nothing without it, and point at the
# release that the head serves: what the head has committed is the only decision there is.
set -u
folder=${0%/*}
. "$folder/group"
mine=${release##*/} engine='' state=idle token=- wire='' door='' word=-
command=("$@")
[ -z "$launch_port" ] || . "$folder/launch"
trap '' PIPE
trap 'stop_engine; exit 143' TERM
say() { printf '%s\n' "$*"; }
stop_engine() {
  [ -z "$door" ] || close_door
  [ -n "$engine" ] || return 0
  docker stop --time "$stop_timeout" "$container" >/dev/null 2>&1
  kill "$engine" 2>/dev/null
  wait "$engine" 2>/dev/null
  engine=''
}
start_engine() {
  if [ -n "$wire" ]; then "${command[@]}" {wire}>&- & else "${command[@]}" & fi
  engine=$!
  state=running
}
give_up() {
  say "$*"
  stop_engine
  exit 1
}
engine_ended() {
  kill -0 "$engine" 2>/dev/null && return 1
  wait "$engine"
  ended=$?
  say "the server on this host ended with status $ended"
}
interface=$(ip -o -4 address show | awk -v address="$ADDRESS" '{ split($4, own, "/") } own[1] == address { print $2; exit }')
[ -n "$interface" ] || give_up "no interface of this host has $ADDRESS; next: set its fabric_address, then run the deploy again"
export GLOO_SOCKET_IFNAME=$interface NCCL_SOCKET_IFNAME=$interface
rm -rf "$here" && mkdir -p -m 0700 "$here" || exit 1
[ -z "$launch_port" ] || { make_key; export UCX_NET_DEVICES=$interface OMPI_MCA_btl_tcp_if_include OMPI_MCA_oob_tcp_if_include
  OMPI_MCA_btl_tcp_if_include=$(fabric) OMPI_MCA_oob_tcp_if_include=$OMPI_MCA_btl_tcp_if_include; }

# -- the head

put() { printf '%s %s\n' "$1" "$2" >"$here/state.new" && mv -f "$here/state.new" "$here/state"; }
heard() { # rank; sets line, said, theirs, time, key: what the member has said last, or fails
  { read -r line said _ theirs _ time key <"$here/rank-$1"; } 2>/dev/null
}
missing() { # prints the first member that is not ready to start
  local rank line said theirs time key
  for ((rank = 1; rank < ${#places[@]}; rank++)); do
    if ! heard "$rank"; then say "rank $rank (${places[rank]}): it has not called"
    elif [ "$theirs" != "$mine" ]; then say "rank $rank (${places[rank]}): it is at release $theirs"
    elif [ "$said" != idle ]; then say "rank $rank (${places[rank]}): it still runs"
    else continue; fi
    return 0
  done
  return 1
}
wait_for_all() {
  local why told='' at=0
  while why=$(missing); do
    kill -0 "$listener" 2>/dev/null || give_up "nothing listens at $ADDRESS:$line_port"
    if [ "$why" != "$told" ]; then printf '%s\n' "$why" >"$here/missing"; fi
    if [ "$why" != "$told" ] || ((SECONDS - at >= 60)); then say "waiting for $why"; told=$why at=$SECONDS; fi
    sleep 0.5
  done
  rm -f "$here/missing"
}
answers() { # whether the endpoint gives a token, in the time that a silent member has had already
  local body="{\"model\": \"$model\", \"prompt\": \"1\", \"max_tokens\": 1}" login=()
  [ -z "${KEY:-}" ] || login=(--header "@$home/keys/$KEY")
  [ "$(curl --silent --noproxy '*' --max-time "$grace" --output /dev/null --write-out '%{http_code}' "${login[@]}" \
    --header 'Content-Type: application/json' --data "$body" "$url/v1/completions")" = 200 ]
}
check_members() { # gives up when one has ended, or is silent and no token comes
  local rank line said theirs time key now age
  printf -v now '%(%s)T' -1
  for ((rank = 1; rank < ${#places[@]}; rank++)); do
    heard "$rank" && [ "$line" = "${lines[rank]}" ] || { put stop -; give_up "rank $rank (${places[rank]}) has ended; all stop"; }
    age=$((now - time))
    ((age > grace && SECONDS - asked > grace)) || continue
    answers || { put stop -; give_up "rank $rank (${places[rank]}) is silent for $age s, and no token comes; all stop"; }
    say "rank $rank (${places[rank]}) is silent for $age s, and tokens come: going on"
    asked=$SECONDS
  done
}
lead() {
  local rank line said theirs time key began
  IFS=, read -r -a places <<<"$MEMBERS"
  put wait -
  systemd-socket-activate --accept --inetd --listen="$ADDRESS:$line_port" /bin/bash "$folder/line-head" "$folder" "$MEMBERS" &
  listener=$! asked=0 lines=()
  wait_for_all
  read -r token </proc/sys/kernel/random/uuid
  for ((rank = 1; rank < ${#places[@]}; rank++)); do heard "$rank" && lines[rank]=$line; done
  say "all ${#places[@]} members are there: starting"
  [ -z "$launch_port" ] || prepare_launch || give_up "it cannot be prepared how the other members start their processes"
  put go "$token"
  start_engine
  began=$SECONDS
  while ! engine_ended; do
    check_members
    [ -z "$launch_port" ] || launch_asked
    if [ "$(cat "$here/ready" 2>/dev/null)" = $$ ]; then put ready "$token"
    elif ((SECONDS - began > load_timeout)); then put stop -; give_up "not ready within its load_timeout, $load_timeout s"; fi
    sleep 0.5
  done
  put stop -
  exit "$ended"
}

# -- the other members

whole() { # release
  [[ $1 =~ ^[0-9a-f]{12}$ ]] && (cd "$home/releases/$1" && sha256sum --check --strict --quiet SHA256SUMS) >/dev/null 2>&1
}
follow() { # release of the head
  ((SECONDS >= next_try)) || return 0
  next_try=$((SECONDS + 10))
  whole "$1" || { say "the head is at release $1, which is not on this host whole; next: run the deploy again"; return 0; }
  say "the head is at release $1: following it"
  systemctl stop "$follow_unit" 2>/dev/null
  systemd-run --quiet --collect --unit="$follow_unit" /bin/sh "$home/releases/$1/follow" "$1"
}
agree() { # the head has committed what runs here
  [ "$(readlink "$home/proven")" = "releases/$mine" ] && cmp -s "$home/binding" "$home/proven-binding" && return 0
  /bin/sh "$folder/commit-member" "$mine" && say "release $mine is proven at the head"
}
heed() { # word token release proven asked-for key: what the head says
  case $1 in
    go)
      if [ -z "$engine" ] && [ "$3" = "$mine" ]; then
        # The head's starts are limited, and these are the same ones.
        systemctl reset-failed "$unit" 2>/dev/null
        token=$2
        [ -z "$launch_port" ] || open_door "$6"
        start_engine
      fi ;;
    ready) [ -z "$engine" ] || printf '%s\n' $$ >"$here/ready" ;;
    wait | stop) [ -z "$engine" ] || give_up "the head stops; so does this host" ;;
  esac
  if [ -n "$engine" ]; then
    [ "$2" = "$token" ] || give_up "the head has started anew; so does this host"
    if [ "$4" = "$mine" ]; then agree; fi
  elif [ "$3" != "$mine" ]; then follow "$3"; fi
  case ${has%%:*} in
    "$5") ;;
    *) if whole "$5"; then has=$5:yes; else has=$5:no; fi ;;
  esac
}
hear() { # seconds; sets answer to a whole line. A busy host's time may be over within one: what came of it is kept
  local piece status
  IFS= read -r -t "$1" -u "$wire" piece
  status=$?
  rest=$rest$piece
  [ $status != 0 ] || { answer=$rest; rest=''; }
  return $status
}
talk() { # until the line is cut
  local answer='' rest='' status at=$SECONDS has=-:no
  while printf '%s %s %s %s %s %s\n' "$RANK" "$state" "$token" "$mine" "$has" "$word" >&"$wire" 2>/dev/null; do
    hear 1
    status=$?
    if [ $status = 0 ]; then
      # After a pause several answers lie there.
      while hear 0.02; do :; done
      at=$SECONDS
      # shellcheck disable=SC2086 - six words
      set -f; set -- $answer; set +f
      [ $# != 6 ] || heed "$@"
    elif [ $status -le 128 ]; then break
    fi
    if [ -n "$engine" ] && engine_ended; then exit "$ended"; fi
    ((SECONDS - at <= 2 * grace + 30)) || break
    sleep 1
  done
}
join() {
  next_try=0
  while :; do
    if { exec {wire}<>"/dev/tcp/$HEAD/$line_port"; } 2>/dev/null; then
      say "in line with the head, $HEAD"
      talk
      [ -z "$engine" ] || give_up "the line to the head, $HEAD, is cut; this host stops"
      exec {wire}>&-
      wire=''
      say "the line to the head, $HEAD, is cut: calling again"
    fi
    sleep 1
  done
}
if [ "$RANK" = 0 ]; then lead; else join; fi
