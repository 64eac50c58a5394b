# Changes the keys of clients on a gateway: first its files, each whole and on the disk, then its process. Parameters: folder
# maps (names) revoked (file) left (SHA-256 of the files as the last deploy wrote them) admin master (sockets) unit program (keys_change.awk)
# journal. Standard input: rows for the program.
# Prints `absent`, `stopped` or `took`, and how many keys the gateway had of those that are revoked.
#include take_maps.sh
#include key_rows.sh
umask 077
rows=$(cat)
one_at_a_time
# A deploy that has read the host before, and writes its maps later, carries these rows out on them.
number=$(tail -n 1 "$journal" 2>/dev/null | awk -v now="$(date +%s%3N)" '{ last = $1 } END { printf "%.0f", (now > last ? now : last + 1) }')
{ tail -n 10000 "$journal" 2>/dev/null; printf '%s\n' "$rows" | sed "s/^/$number /"; } >"$journal.new" && mv -f "$journal.new" "$journal" || exit 1
[ -f "$folder/keys.map" ] || { echo "absent 0"; exit 0; }
changed() { printf '%s\n' "$rows" | in_map "$@"; }
gone=$(changed revoked "$folder/keys.map") || exit 1
had=$(changed had "$folder/keys.map" | wc -l)
if [ -n "$gone" ]; then
  [ -f "$revoked" ] || : >"$revoked" || exit 1
  # Ten thousand are remembered; a deploy takes the rest from the site's file.
  { cat "$revoked"; printf '%s\n' "$gone"; } | awk '!seen[$0]++' | tail -n 10000 | durable_file "$revoked" 0600 || exit 1
fi
for map in $maps; do
  [ -f "$folder/$map.map" ] || continue
  changed "$map" "$folder/$map.map" | LC_ALL=C sort | durable_file "$folder/$map.map" 0600 || exit 1
  files="$files $folder/$map.map"
done
# Drift must not take what this change writes for an edit by hand.
[ ! -f "$left" ] || sha256sum $files | awk 'NR == FNR { sum[$2] = $1; next } $2 in sum { $1 = sum[$2] } 1' - "$left" |
  durable_file "$left" 0644 || exit 1
systemctl is-active --quiet "$unit" || { printf '%s\n' "stopped $had"; exit 0; }
take_maps "$admin" "$master" $files || { printf '%s\n' "its files have the change, and its process did not take it" >&2; exit 1; }
printf '%s\n' "took $had"
