# Keep all users but root from writing to what is Rackwright's. Parameters: paths (one a line, those above first: once a folder is
# closed, no other user can put a link in the place of what is in it).
status=0
while read -r path; do
  [ -L "$path" ] || [ ! -e "$path" ] || { chown root:root "$path" && chmod go-w "$path"; } || status=1
done <<END
$paths
END
exit $status
