# Say something to the control machine: a word that it knows, and a text, which is data whatever it holds.
# It goes into a file of its own, because the job's log takes what engines and hooks print, and must never be believed.
# The line carries the job's nonce and the log's size, which is its place among the log's lines.
event() {
  read -r event_nonce <"$JOB/nonce" || :
  printf '%s %s %s %s\n' "$event_nonce" "$(stat -c %s "$JOB/log")" "$1" "$(printf %s "$2" | base64 -w0)" >>"$JOB/events"
}
