# Print the marks that keep runs away from a host, each as base64 behind its name, and `marks` where it has a folder of marks.
# Parameters: drained quarantine (files).
shown() { [ ! -f "$2" ] || printf '%s\n' "$1=$(head -c 4096 "$2" | base64 -w0)"; }
shown drained "$drained"
[ ! -d "${quarantine%/*}" ] || echo marks
shown quarantine "$quarantine"
exit 0
