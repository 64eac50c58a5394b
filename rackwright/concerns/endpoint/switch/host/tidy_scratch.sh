# Put right where the next start makes its caches, and keep other users out of there: a container may write files that anybody could
# run as root, and links that lead anywhere. None is followed. Parameters: caches (the folder of all images').
[ -d "$caches" ] && [ ! -L "$caches" ] || rm -rf "$caches"
mkdir -p -m 0700 "$caches" && chown root:root "$caches" && chmod 0700 "$caches"
for place in "$caches"/* "$caches"/*/tmp "$caches"/*/hf-modules "$caches"/*/triton "$caches"/*/inductor "$caches"/*/home; do
  if [ -L "$place" ] || { [ -e "$place" ] && [ ! -d "$place" ]; }; then
    rm -f "$place" 2>/dev/null || { chattr -i "$place" "${place%/*}"; rm -f "$place"; } ||
      printf '%s\n' "$place is in the way of the endpoint's caches; next: rm $place" >&2
  fi
done
