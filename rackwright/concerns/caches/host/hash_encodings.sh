# Hash the encodings of a host again; of a wrong one the mark goes, so that the next reading hashes it, and only that file is fetched again.
# Parameters: folder sums ("SHA256  NAME" lines) marks (of what was verified, a file each).
cd "$folder" || exit 1
printf '%s\n' "$sums" | while read -r wanted name; do
  [ -f "$name" ] && [ ! -L "$name" ] || { event damaged "gone: $folder/$name"; rm -f "$marks/$name"; continue; }
  seen=$(sha256sum <"$name" | cut -d' ' -f1)
  if [ "$seen" = "$wanted" ]; then
    printf '%s\n' "as published: $name"
    [ ! -f "$marks/$name" ] || touch "$marks/$name"
  else
    event damaged "damaged: $folder/$name"
    rm -f "$marks/$name"
  fi
done
