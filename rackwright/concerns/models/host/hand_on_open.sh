# Close the port again however this job ends: systemd runs this file after it. Parameter: undo (its text).
printf '%s\n' "$undo" >"$JOB/undo"
open_port || exit 1
