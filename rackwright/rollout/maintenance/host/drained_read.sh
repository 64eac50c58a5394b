# Print the mark of a drained host, behind a line that announces it; nothing without a mark. Parameter: mark.
[ -f "$mark" ] && echo drained && head -c 4096 "$mark"
exit 0
