# The words of the other hosts of the group, asked at their word's ports. bash, because sh has no sockets: other scripts here ask with it, too.
asked=$JOB/words
ask_peer() { # NAME=ADDRESS:PORT; writes its word
  at=${1#*=} address=${1#*=}
  address=${address%:*} port=${at##*:}
  address=${address#[} address=${address%]}
  word=$(timeout 3 bash -c 'exec 3<>"/dev/tcp/$0/$1" && printf "%s\n" "$2" >&3 && head -c 200 <&3' "$address" "$port" "$endpoint" 2>/dev/null | head -n 1 | tr -cd 'a-z #')
  printf '%s\n' "${word:-silent}" >"$asked/${1%%=*}"
}
ask_peers() { # 32 at a time; sets `ready`, the number of those that serve, and `needed`, how many must
  rm -rf "$asked" && mkdir -p "$asked" || return 1
  batch=0
  for peer in $peers; do
    ask_peer "$peer" &
    batch=$((batch + 1))
    [ $((batch % 32)) != 0 ] || wait
  done
  wait
  ready=$(cat "$asked"/* 2>/dev/null | grep -cx 'ready up')
  # One that was given up does not come back on its own, and its group is smaller until then: never by more than half.
  sick=$(cat "$asked"/* 2>/dev/null | grep -cx 'down #sick')
  [ $((2 * sick)) -le "$hosts" ] || sick=$((hosts / 2))
  needed=$((hosts - sick - limit))
}
# Hosts that mark themselves at the same moment see each other: of them the first in the inventory's order continues.
# The words before are in the folder `words.before`; sets `ready` as if those behind this host had withdrawn.
first_among_peers() {
  rm -rf "$asked.before" && mv "$asked" "$asked.before" && ask_peers || return 1
  at=0
  for peer in $peers; do
    name=${peer%%=*}
    if [ "$(cat "$asked.before/$name")" = 'ready up' ] && [ "$(cat "$asked/$name")" = 'down #watch' ]; then
      [ $at -ge "$index" ] || { first=$name; return 1; }
      ready=$((ready + 1))
    fi
    at=$((at + 1))
  done
}
in_turn() { # whether this is the minute of this host: hosts of one group never begin in the same one; fails with `why`
  slots=$hosts
  [ "$slots" -le 4 ] || slots=4
  [ "$slots" -gt 1 ] || return 0
  now=$(date +%s)
  minutes=$(((index % slots - now / 60 % slots + slots) % slots))
  # The looks come every 30 to 45 s: one of them falls into each minute.
  if [ $minutes = 0 ] && [ $((now % 60)) -lt 55 ]; then return 0; fi
  [ $minutes != 0 ] || minutes=$slots
  why="its minute comes in $((minutes * 60 - now % 60)) s"
  return 1
}
