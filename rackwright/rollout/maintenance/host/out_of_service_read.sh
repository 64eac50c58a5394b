# Print the marks that keep runs away from a host, each as base64 behind its name, and `marks` where it has a folder of marks.
# Then, for each gateway that has asked for the word of an endpoint that serves, `asked GATEWAY ENDPOINT SECONDS`: how long ago that was.
# Parameters: drained quarantine (files) notes (folder).
shown() { [ ! -f "$2" ] || printf '%s\n' "$1=$(head -c 4096 "$2" | base64 -w0)"; }
shown drained "$drained"
[ ! -d "${quarantine%/*}" ] || echo marks
shown quarantine "$quarantine"
#include askers.sh
for asker_note in "$notes"/gateway-*@*; do
  [ -f "$asker_note" ] && asker_read "$asker_note" || continue
  endpoint=${asker_note##*@}
  systemctl is-active --quiet "rackwright-$endpoint.service" || continue
  asker_clock
  printf 'asked %s %s %s\n' "$asker" "$endpoint" $(((asker_now - asker_last) / 100))
done
exit 0
