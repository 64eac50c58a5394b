# Give a file to root, readable by all. Others may write in its folder, and put a link to any file in its place: it is known by its
# descriptor and its bytes, not by its name. Parameters: path sha256.
[ -f "$path" ] && exec 9<"$path" || exit 1
seen=$(sha256sum <"/proc/self/fd/9")
[ ! -L "$path" ] && [ "$path" -ef /proc/self/fd/9 ] && [ "${seen%% *}" = "$sha256" ] ||
  { printf '%s\n' "$path was changed by another process just now; next: ls -l $path, then run again" >&2; exit 1; }
chown root:root /proc/self/fd/9 && chmod 0644 /proc/self/fd/9
