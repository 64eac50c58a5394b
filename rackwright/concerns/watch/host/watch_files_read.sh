# SHA-256, mode, owner and path of each file of the watch, and the list that the last deploy left. Parameters: etc units left.
show "$left"
# A name that Rackwright never gives might forge a line.
plain() { case $1 in *[!A-Za-z0-9:_.@/+~-]*) return 1 ;; esac; }
set --
for path in "$etc"/* "$etc"/watched/* "$etc"/watch.d/* "$units"/rackwright-watch.* "$units"/rackwright-word* "$units"/rackwright-act@* \
  "$units"/rackwright-notify.*; do
  [ ! -f "$path" ] || [ -L "$path" ] || ! plain "$path" || set -- "$@" "$path"
done
[ "$#" = 0 ] || { sha256sum "$@"; stat -c '%a:%U %n' "$@"; } | awk '
  length($1) == 64 { sum[$2] = $1; next }
  { print "watched " sum[$2] " " $1 " " $2 }'
# The host's own addresses: ADDRESS, and for IPv6 32 hexadecimal digits.
awk '/\|--/ { found = $2 } /host LOCAL/ && found !~ /^127[.]/ { print "address " found }' /proc/net/fib_trie 2>/dev/null | sort -u
while read -r found _ _ _ _ name; do [ "$name" = lo ] || echo "address $found"; done 2>/dev/null </proc/net/if_inet6
exit 0
