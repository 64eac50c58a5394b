# Print what an image accepts, as it says itself: one line of JSON, of at most a megabyte. It follows run_in_image.sh.
case $status in
  0) head -c 1048576 "$work/answer" | sed -n 1p ;;
  *) why_not >&2 ;;
esac
exit "$status"
