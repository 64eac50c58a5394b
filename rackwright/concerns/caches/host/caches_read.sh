# Print what the caches of a host have beside models, images and encodings that are in use, and when each was verified.
# Behind hub_caches.sh, whose functions find the users' caches: files there are counted, and no link is followed.
# Parameters: models_dir manifests hashed (ending of a file there) marks (of encodings).
uptime() { cut -d. -f1 /proc/uptime; }
until=$(($(uptime) + 40))
sum_of() { # a folder; prints the bytes of its files, or - where counting all of them takes too long
  left=$((until - $(uptime)))
  [ $left -gt 0 ] || { printf -- -; return; }
  { timeout -k 1 $left find "$1" -xdev -type f -printf '%s\n' 2>/dev/null || [ $? -lt 124 ] || echo late; } |
    awk '/late/ { late = 1 } { sum += $1 } END { if (late) printf "-"; else printf "%.0f", sum }'
}
plain() { case $1 in *[!A-Za-z0-9._/@+-]*) false ;; esac; }
for file in "$manifests"/*."$hashed"; do
  [ -f "$file" ] || continue
  read -r second <"$file"
  name=${file##*/}
  printf 'hashed %s %s\n' "$second" "${name%."$hashed"}"
done
for file in "$marks"/*; do [ ! -f "$file" ] || printf 'mark %s %s\n' "$(stat -c %Y "$file")" "${file##*/}"; done
hangs "$models_dir" || for folder in "$models_dir"/*; do
  [ -d "$folder" ] && [ ! -L "$folder" ] && plain "$folder" || continue
  if [ -d "$folder/.parts" ]; then kind=unfinished; else kind=folder; fi
  # What this host has verified has its bytes in its record.
  [ ! -f "$manifests/${folder##*/}.json" ] || continue
  printf '%s %s %s\n' "$kind" "$(sum_of "$folder")" "$folder"
done
possible | sort -u | while read -r home cache; do
  really "$cache" && within "$home" "$cache" "$real" && printf '%s\n' "$real"
done | sort -u | while read -r cache; do
  for folder in "$cache"/models--*; do
    [ -d "$folder" ] && [ ! -L "$folder" ] && plain "$folder" || continue
    commits=
    for snapshot in "$folder"/snapshots/*; do
      commit=${snapshot##*/}
      case $commit in *[!0-9a-f]* | '') ;; *) commits=$commits,$commit ;; esac
    done
    printf 'hub %s %s %s\n' "$(sum_of "$folder")" "$folder" "${commits#,}"
  done
  [ ! -d "$cache/blobs" ] || [ -L "$cache/blobs" ] || printf 'shared %s %s\n' "$(sum_of "$cache/blobs")" "$cache/blobs"
done
exit 0
