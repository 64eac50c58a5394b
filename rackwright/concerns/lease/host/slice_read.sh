# Print what the host keeps of the last run that changed it. Parameters: slice most (bytes).
[ ! -f "$slice" ] || printf '%s\n' "slice=$(head -c "$most" "$slice" | base64 -w0)"
