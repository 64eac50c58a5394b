# Refuse to start with models and encodings that are not what this host has verified: the owner of a folder above them could put others in
# their places. Where owners or times differ, the bytes decide, so that a backup or another owner alone does not stop an endpoint.
# Parameters: needs (the file that names the paths, in the release) records (the host's, of models) marks (of encodings).
export LC_ALL=C
refuse() {
  printf '%s\n' "$1 is not what this host has verified: $2; next: find out who changed it, then run the deploy again" >&2
  exit 1
}
noted() { # a record; prints SHA256 SIZE MTIME CTIME NAME of each file, and - for a CTIME where only root could write
  awk '
    function value(line) { sub(/^[^:]*: /, "", line); sub(/,$/, "", line); gsub(/"/, "", line); return line }
    $1 == "\"path\":" { name = value($0); sum = size = mtime = ctime = "-" }
    $1 == "\"sha256\":" { sum = value($0) }
    $1 == "\"size\":" { size = value($0) }
    $1 == "\"mtime_ns\":" { mtime = value($0) }
    $1 == "\"ctime_ns\":" { ctime = value($0); sub(/null/, "-", ctime) }
    # A name with an escape would take a whole parser.
    $1 ~ /^}/ && name != "" { if (name !~ /\\/) print sum, size, mtime, ctime, name; name = "" }' "$1"
}
there() { # a folder; prints SIZE MTIME CTIME NAME of each of its files
  find "$1" -type f -printf '%s %T@ %C@ %P\n' | awk '
    function whole(time) { split(time, part, "."); return part[1] substr(part[2] "000000000", 1, 9) }
    { name = $0; sub(/^[^ ]* [^ ]* [^ ]* /, "", name); print $1, whole($2), whole($3), name }'
}
differing() { # what was noted, what is there, and whether owners tell nothing ("open"); prints SHA256 NAME of each file that may be another
  { printf '%s\n' "$1"; echo; printf '%s\n' "$2"; } | awk -v open="$3" '
    NF == 0 { seen = 1; next }
    !seen { name = $0; sub(/^[^ ]* [^ ]* [^ ]* [^ ]* /, "", name); sum[name] = $1; size[name] = $2 "/"; times[name] = $3 " " $4; closed[name] = $4 == "-"; next }
    { name = $0; sub(/^[^ ]* [^ ]* [^ ]* /, "", name)
      if (name in sum && size[name] == $1 "/" && (closed[name] ? open == "" : times[name] == $2 " " $3)) delete sum[name] }
    END { for (name in sum) print sum[name], name }'
}
same_model() { # a folder and its record
  { [ -d "$1" ] && [ ! -L "$1" ]; } || refuse "$1" "it is not there, or is a link"
  files=$(noted "$2")
  open=$(find "$1" ! -type l \( ! -uid 0 -o -perm /022 \) -print -quit)
  differing "$files" "$(there "$1")" "$open" | while read -r sum name; do
    [ -f "$1/$name" ] && [ ! -L "$1/$name" ] || refuse "$1" "$name is gone"
    printf '%s\n' "reading $1/$name: others than root could have changed it"
    seen=$(sha256sum <"$1/$name")
    [ "${seen%% *}" = "$sum" ] || refuse "$1" "$name has other bytes"
  done || exit 1
  # A file more could be loaded as well, where only root could have added one; in a share that hosts fill, another one may have. Hidden ones are
  # passed over, as engines do.
  [ -n "$open" ] && printf '%s\n' "$files" | grep -qE '^[^ ]+ [^ ]+ [^ ]+ - ' || return 0
  find "$1" -name '.*' -prune -o -type f -cnewer "$2" -printf '%P\n' | while read -r name; do
    case $name in *[!\ -~]* | *\"* | *\\*) continue ;; esac
    printf '%s\n' "$files" | cut -d' ' -f5- | grep -qxF -e "$name" || refuse "$1" "$name was added"
  done || exit 1
}
while read -r kind folder; do
  [ "$kind" = path ] || continue
  record=$records/${folder##*/}.json
  if [ -f "$record" ] && grep -qF "\"folder\": \"$folder\"" "$record"; then same_model "$folder" "$record"; fi
  for mark in "$marks"/*; do
    [ -f "$mark" ] && [ -f "$folder/${mark##*/}" ] || continue
    read -r sum _ <"$mark"
    seen=$(sha256sum <"$folder/${mark##*/}")
    [ "${seen%% *}" = "$sum" ] || refuse "$folder/${mark##*/}" "it has other bytes"
  done
done <"$needs"
exit 0
