# Ask an endpoint questions, `at_once` at a time, and none while other clients' requests wait. It stands behind known_curl.sh.
# Parameters: url; metrics and waiting (where, and by which name, the engine says how many requests wait; `-` for nowhere);
# at_once; limit (seconds for one answer); within (seconds after which no other question is sent); most (bytes of an answer).
# Standard input: a question a line, its number and the request's body. Prints a line an answer: its number, the HTTP status
# (000 for none), the seconds, and the answer, gzip in base64; and `waits` where other clients held it up.
umask 077
mkdir -p /run/rackwright && folder=$(mktemp -d /run/rackwright/questions.XXXXXXXX) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
# By the clock that no time service steps.
clock() { read -r now _ </proc/uptime; now=${now%%.*}; }
late() { clock; [ "$now" -ge "$until" ]; }
others_wait() {
  [ "$metrics" != - ] || return 1
  curl --silent --noproxy '*' --max-time 10 ${rackwright_login:+--header "@$rackwright_login"} "$metrics" </dev/null 2>/dev/null |
    awk -v name="$waiting" '{ split($1, part, "{") } part[1] == name { sum += $NF } END { exit !(sum > 0) }'
}
ask() { # the number of the worker
  while ! late && IFS= read -r row; do
    while others_wait; do
      : >"$folder/waits"
      late && return
      sleep 1
    done
    printf '%s' "${row#* }" | curl --silent --noproxy '*' --max-time "$limit" ${rackwright_login:+--header "@$rackwright_login"} \
      --header 'Content-Type: application/json' --data-binary @- --output "$folder/$1.answer" \
      --write-out '%{http_code} %{time_total}' "$url" >"$folder/$1.status" 2>/dev/null
    [ -s "$folder/$1.status" ] || echo '000 0' >"$folder/$1.status"
    : >>"$folder/$1.answer"
    printf '%s %s %s\n' "${row%% *}" "$(cat "$folder/$1.status")" "$(head -c "$most" "$folder/$1.answer" | gzip -c | base64 -w0)" >>"$folder/$1.done"
    rm -f "$folder/$1.answer"
  done
}
clock
until=$((now + within))
rows=$(cat)
worker=0
while [ "$worker" -lt "$at_once" ]; do
  printf '%s\n' "$rows" | awk -v all="$at_once" -v mine="$worker" 'NR % all == mine' | ask "$worker" &
  worker=$((worker + 1))
done
wait
cat "$folder"/*.done 2>/dev/null
[ ! -e "$folder/waits" ] || echo waits
