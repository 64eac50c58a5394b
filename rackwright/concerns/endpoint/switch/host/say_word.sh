# Tell a switch that waits for the control machine whether its release is good. Parameters: unit folder word.
systemctl is-active --quiet "$unit" || { echo "the switch has ended already" >&2; exit 1; }
umask 077
printf '%s\n' "$word" >"$folder/word.new" && mv -f "$folder/word.new" "$folder/word"
# The next message would take the place of one that has not been read; of `admit` alone another one follows soon.
[ "$word" = admit ] || exit 0
for _ in $(seq 100); do
  [ -e "$folder/word" ] || exit 0
  sleep 0.1
done
echo "the switch does not read its messages" >&2
exit 1
