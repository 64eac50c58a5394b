# Hash every file of a model folder against what was recorded when it arrived; a damaged one is touched, so that
# the next reading sees it and only that file is fetched again. Where root may not touch it, nothing counts as verified afterwards.
# Parameters: place sums ("SHA256  PATH" lines) record (the host's own, of what is verified).
# Serving endpoints read the same disk.
ionice -c 3 -p $$ || true
cd "$place" || exit 1
printf '%s\n' "$sums" | while read -r wanted path; do
  { [ -f "$path" ] && [ ! -L "$path" ]; } || { printf '%s\n' "gone: $path"; continue; }
  seen=$(sha256sum "$path" | cut -d' ' -f1)
  if [ "$seen" = "$wanted" ]; then printf '%s\n' "as recorded: $path"; continue; fi
  printf '%s\n' "damaged: $path"
  touch -h "$path" 2>/dev/null || rm -f "$record"
done
