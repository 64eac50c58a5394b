# Packages, SHA-256, mode, owner and path of each file of the gateway, and the list that the last deploy left.
# Parameters: folder left unit config revoked address_folder address_left address_unit (keepalived) renewal_folder renewal_left renewal_units
# (of the certificate's timer) served (its PEM) account (folder of ACME) dns_name journal (changes of keys).
show "$left"
show "$address_left"
show "$renewal_left"
show "$config"
show "$revoked"
# shellcheck disable=SC2016 - dpkg-query's own variables
dpkg-query -W -f '${db:Status-Status} package ${Package} ${Version}\n' haproxy curl keepalived nftables uacme openssl ca-certificates 2>/dev/null | sed -n 's/^installed //p'
if ! have haproxy && have apt-cache; then
  candidate=$(apt-cache policy haproxy 2>/dev/null | sed -n 's/^  Candidate: \([0-9][^ ]*\)$/\1/p')
  [ -z "$candidate" ] || printf '%s\n' "candidate $candidate"
fi
# A name that Rackwright never gives might forge a line.
plain() { case $1 in *[!A-Za-z0-9:_.@/+~-]*) return 1 ;; esac; }
set --
for path in "$folder"/* "$folder"/certificates/* "$unit" "$address_folder"/* "$address_unit" "$renewal_folder"/* $renewal_units; do
  [ ! -f "$path" ] || [ -L "$path" ] || [ "$path" = "$revoked" ] || ! plain "$path" || set -- "$@" "$path"
done
[ "$#" = 0 ] || { sha256sum "$@"; stat -c '%a:%U %n' "$@"; } | awk '
  length($1) == 64 { sum[$2] = $1; next }
  { print "gateway " sum[$2] " " $1 " " $2 }'
certificate() { # PEM; its end and its time in seconds, and its names
  openssl x509 -noout -startdate -enddate -ext subjectAltName -in "$1" 2>/dev/null | tr -d '\r' | {
    while IFS= read -r row; do
      case $row in
        notBefore=*) begins=$(date -d "${row#*=}" +%s) ;;
        notAfter=*) ends=$(date -d "${row#*=}" +%s) ;;
        *DNS:*) names=$(printf '%s\n' "$row" | tr -d ' ' | tr , '\n' | sed -n 's/^DNS:\([A-Za-z0-9.*-]*\)$/\1/p' | tr '\n' ,) ;;
      esac
    done
    [ -z "$ends" ] || printf '%s\n' "$((ends - $(date +%s))) $((ends - begins)) ${names:-,}"
  }
}
if [ -n "$served" ] && [ -s "$served" ]; then
  by=given
  if [ -n "$account" ]; then
    by=other
    cat "$account/$dns_name/cert.pem" "$account/private/$dns_name/key.pem" 2>/dev/null | cmp -s - "$served" && by=issued
  fi
  seen=$(certificate "$served")
  [ -z "$seen" ] || printf '%s\n' "certificate $by $seen"
fi
tail -n 1 "$journal" 2>/dev/null | sed -n 's/^\([0-9][0-9]*\) .*/keys_changed \1/p'
ip -o -4 addr show scope global 2>/dev/null | awk '$3 == "inet" { print "place " $2 " " $4 }'
exit 0
