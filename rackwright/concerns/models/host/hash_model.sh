# Hash every file of a model folder against what was recorded when it arrived; a damaged one is touched, so that
# the next reading sees it and only that file is fetched again. Where root may not touch it, nothing counts as verified afterwards.
# Parameters: place sums ("SHA256  PATH" lines) size (MiB of all of them) record (the host's own, of what is verified)
# hashed (gets the second in which all were found right).
# Serving endpoints read the same disk.
ionice -c 3 -p $$ || true
cd "$place" || exit 1
uptime() { cut -d. -f1 /proc/uptime; }
tell() { # bytes that were read
  mib=$(($1 / 1048576)) took=$(($(uptime) - began))
  event progress "verifying: $mib MiB of $size MiB ($((100 * mib / size))%), $((mib / (took > 0 ? took : 1))) MiB/s"
}
printf '%s\n' "$sums" | {
  bytes=0 bad=0 began=$(uptime)
  while read -r wanted path; do
    [ -f "$path" ] && [ ! -L "$path" ] || { event damaged "gone: $place/$path"; bad=$((bad + 1)); continue; }
    seen=$(sha256sum "$path" | cut -d' ' -f1)
    bytes=$((bytes + $(stat -c %s "$path")))
    tell $bytes
    if [ "$seen" = "$wanted" ]; then printf '%s\n' "as recorded: $path"; continue; fi
    event damaged "damaged: $place/$path"
    bad=$((bad + 1))
    touch -h "$path" 2>/dev/null || rm -f "$record"
  done
  if [ $bad = 0 ]; then date +%s >"$hashed"; else rm -f "$hashed"; fi
}
