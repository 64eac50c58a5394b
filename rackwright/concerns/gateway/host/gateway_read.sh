# Packages, SHA-256, mode, owner and path of each file of the gateway, and the list that the last deploy left.
# Parameters: folder left unit config revoked address_folder address_left address_unit (keepalived).
show "$left"
show "$address_left"
show "$config"
show "$revoked"
# shellcheck disable=SC2016 - dpkg-query's own variables
dpkg-query -W -f '${db:Status-Status} package ${Package} ${Version}\n' haproxy curl keepalived nftables 2>/dev/null | sed -n 's/^installed //p'
if ! have haproxy && have apt-cache; then
  candidate=$(apt-cache policy haproxy 2>/dev/null | sed -n 's/^  Candidate: \([0-9][^ ]*\)$/\1/p')
  [ -z "$candidate" ] || printf '%s\n' "candidate $candidate"
fi
# A name that Rackwright never gives might forge a line.
plain() { case $1 in *[!A-Za-z0-9:_.@/+~-]*) return 1 ;; esac; }
set --
for path in "$folder"/* "$folder"/certificates/* "$unit" "$address_folder"/* "$address_unit"; do
  [ ! -f "$path" ] || [ -L "$path" ] || [ "$path" = "$revoked" ] || ! plain "$path" || set -- "$@" "$path"
done
[ "$#" = 0 ] || { sha256sum "$@"; stat -c '%a:%U %n' "$@"; } | awk '
  length($1) == 64 { sum[$2] = $1; next }
  { print "gateway " sum[$2] " " $1 " " $2 }'
ip -o -4 addr show scope global 2>/dev/null | awk '$3 == "inet" { print "place " $2 " " $4 }'
exit 0
