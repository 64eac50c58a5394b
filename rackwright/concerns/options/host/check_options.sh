# Keep beside the release what its image says of an endpoint's options, and print it for people. It follows run_in_image.sh.
# Parameters: marker keep next (what to type).
folder=$(dirname "$marker")
mkdir -p "$folder"
find "$folder" -type f -printf '%T@ %p\n' | sort -rn | tail -n "+$keep" | cut -d' ' -f2- | while read -r old; do rm -f "$old"; done
case $status in
  0 | 3) ;;
  *)
    why=$(why_not)
    printf '{"checked": false, "refused": [], "why": "%s"}\nnot checked inside the image: %s\n' "$why" "$why" >"$work/answer"
    ;;
esac
# The image has written it: no more of it is kept than Rackwright's check prints.
head -c 262144 "$work/answer" | sed -n 1p >"$marker.new"
sync -d "$marker.new"
mv -f "$marker.new" "$marker"
head -c 262144 "$work/answer" | sed 1d
[ "$status" != 3 ] && exit 0
printf '%s\n' "what serves keeps serving; next: $next"
exit 1
