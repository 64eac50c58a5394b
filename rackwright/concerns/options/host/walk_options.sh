# Print what an image says of what it accepts: one line of JSON, of at most so many bytes. It follows run_in_image.sh.
# Parameters: longest.
case $status in
  0) head -c "$longest" "$work/answer" | sed -n 1p ;;
  *) why_not >&2 ;;
esac
exit "$status"
