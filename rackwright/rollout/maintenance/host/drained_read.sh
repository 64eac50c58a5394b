# Print the mark of a drained host, behind a line that says that there is one; nothing where there is none. Parameter: mark.
[ -f "$mark" ] && echo drained && head -c 4096 "$mark"
exit 0
