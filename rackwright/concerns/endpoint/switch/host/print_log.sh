# Print the end of a kept log, packed. Parameters: folder file most (bytes).
# Only a file of root's own in a folder of root's own: a link would lead to whatever root can read.
own() { [ ! -L "$1" ] && [ "$(stat -c %u "$1" 2>/dev/null)" = "$(id -u)" ]; }
own "$folder" && own "$folder/$file" && [ -f "$folder/$file" ] || exit 1
tail -c "$most" "$folder/$file" | gzip -c | base64 -w0
echo
