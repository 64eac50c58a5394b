#!/bin/bash
# The head's end of one member's lifeline, on standard input and output: one answer to each line that is heard.
# Arguments: the folder of the head's release, the members' addresses in the order of their ranks.
# A line heard: RANK idle|running TOKEN RELEASE ASKED:yes|no KEY. Answered: WORD TOKEN RELEASE PROVEN ASKED KEY.
# KEY is for engines that start processes over hosts: each end's own, of this start of the group alone; else `-`.
set -u
. "$1/group"
IFS=, read -r -a places <<<"$2"
mine=${release##*/} rank=
peer() { # address of who has called
  local inode remote number
  [[ $(readlink "/proc/$$/fd/0") =~ ^socket:\[([0-9]+)\]$ ]] || return 1
  inode=${BASH_REMATCH[1]}
  while read -r _ _ remote _ _ _ _ _ _ number _; do
    [ "$number" = "$inode" ] || continue
    printf '%d.%d.%d.%d\n' "0x${remote:6:2}" "0x${remote:4:2}" "0x${remote:2:2}" "0x${remote:0:2}"
    return 0
  done </proc/net/tcp
  return 1
}
leave() { # a newer line of the same member stays
  local pid
  [ -n "$rank" ] && read -r pid _ <"$here/rank-$rank" && [ "$pid" = $$ ] && rm -f "$here/rank-$rank"
}
caller=$(peer) || exit 1
trap leave EXIT
trap 'exit 1' TERM PIPE
while read -r number said token theirs has key; do
  [[ "$number $said $token $theirs $has $key" =~ ^[1-9][0-9]?\ (idle|running)\ [0-9a-f-]{1,36}\ [0-9a-f]{12}\ [0-9a-f-]{1,12}:(yes|no)\ (-|[A-Za-z0-9+/]{68})$ ]] || exit 1
  [ "${places[number]:-}" = "$caller" ] || exit 1
  rank=$number
  printf '%s %s %s %s %s %(%s)T %s\n' $$ "$said" "$token" "$theirs" "$has" -1 "$key" >"$here/rank-$rank.$$" || exit 1
  mv -f "$here/rank-$rank.$$" "$here/rank-$rank" || exit 1
  read -r word go <"$here/state" || exit 1
  proven=$(readlink "$home/proven")
  asked=- ours=-
  [ -z "$launch_port" ] || read -r _ ours _ <"$here/key.pub" || exit 1
  [ ! -f "$here/asked" ] || read -r asked <"$here/asked"
  proven=${proven##*/}
  printf '%s %s %s %s %s %s\n' "$word" "$go" "$mine" "${proven:--}" "$asked" "$ours" || exit 1
done
