# Tell a switch that waits for the control machine whether its release is good. Parameters: unit folder word.
systemctl is-active --quiet "$unit" || { echo "the switch has ended already" >&2; exit 1; }
umask 077
printf '%s\n' "$word" >"$folder/word.new" && mv -f "$folder/word.new" "$folder/word"
