# Hash every file of a model folder against what was recorded when it arrived; a damaged one is touched, so that
# the next reading sees it and only that file is fetched again. Parameters: place sums ("SHA256  PATH" lines).
# Whoever serves reads the same disk.
ionice -c 3 -p $$ || true
cd "$place" || exit 1
echo "$sums" | while read -r wanted path; do
  [ -f "$path" ] || { echo "gone: $path"; continue; }
  seen=$(sha256sum "$path" | cut -d' ' -f1)
  if [ "$seen" = "$wanted" ]; then echo "as recorded: $path"; else echo "damaged: $path"; touch "$path"; fi
done
