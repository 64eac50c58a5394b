# Print the end of a kept log, packed. Parameters: log most (bytes).
tail -c "$most" "$log" | gzip -c | base64 -w0
echo
