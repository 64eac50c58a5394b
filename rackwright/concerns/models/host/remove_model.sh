# Remove a model of the ownership record: only folders that have our manifest, and our unfinished downloads.
# Parameters: place manifest manifests (folder of the host's own records) shares (kinds of file systems). The place may end in * where the commit was unknown when it was recorded.
# What says that a folder is ours goes last: one that is cut here is found, and removed, by the next run.
remove() { # folder, what in it is the mark
  find "$1" -mindepth 1 ! -path "$1/$2" ! -path "$1/$2/*" -delete && rm -rf "$1" || { printf '%s\n' "$1 could not be removed whole" >&2; exit 1; }
}
for folder in $place $place.partial; do
  [ -d "$folder" ] || continue
  # Hosts that no record here names may serve from it, or be filling it now.
  # shellcheck disable=SC2086 - words
  ! on_share "$folder" $shares || { printf '%s\n' "$folder is on a share, and stays"; continue; }
  case $folder in
    *.partial) [ ! -d "$folder/.parts" ] || { remove "$folder" .parts && rm -f "$manifests/${folder##*/}"; } ;;
    *) [ ! -f "$folder/$manifest" ] || { remove "$folder" "$manifest" && rm -f "$manifests/${folder##*/}.json" "$manifests/${folder##*/}.hashed"; } ;;
  esac
done
# Empty is what a removal leaves that was cut at its very end; below a pattern, an empty folder may be anybody's.
case $place in *\**) ;; *) rmdir --ignore-fail-on-non-empty "$place" "$place.partial" 2>/dev/null ;; esac
rmdir --ignore-fail-on-non-empty "${place%/*}" 2>/dev/null
exit 0
