# Order the gateway's certificate, or renew it in the last third of its time. What fails leaves the old one, and reloads nothing.
# The file `renew-now` in its folder orders a new one whatever its time. Parameters: account (folder) directory email names
# served (PEM of HAProxy) state (folder) config hook unit listener folder (of metrics) place (of their file's path).
#include certificate_metrics.sh
umask 077
cd "$state" && exec 9>lock && flock -w 300 9 || exit 1
first=${names%% *}
certificate=$account/$first/cert.pem key=$account/private/$first/key.pem new=$state/new.pem
seconds() { date -d "$(openssl x509 -noout "-$2" -in "$1" 2>/dev/null | cut -d = -f 2)" +%s; }
note() { # ok or failed, why
  printf '%s\n' "$(date +%s) $1 $2" >result.new && mv -f result.new result
  metrics "$served" "$folder" "$place"
}
fail() { rm -f new.pem check.cfg; note failed "$1"; printf '%s\n' "$1" >&2; exit 1; }
client() { # words of uacme; its output goes to the journal, too
  uacme --verbose --yes --confdir "$account" --acme-url "$directory" --type EC --hook "$hook" "$@" >client.log 2>&1
  client=$?
  cat client.log >&2
  return "$client"
}
why() { sed -n 's/^uacme: //; s/^ *"detail": "\(.*\)",*$/\1/p; /failed\|[Cc]ouldn.t\|denied/p' client.log | tail -n 3 | cut -c 1-400 | tr '\n' ';'; }

register() {
  client new "$email" || { grep -q 'already exists' client.log && client update "$email"; } || fail "no account at $directory: $(why)"
  printf '%s\n' "$email" >"$account/registered"
}
issue() { # 1: the certificate that is there will do
  # shellcheck disable=SC2086 - a list of names
  client --days "$days" $force issue $names || [ "$client" = 1 ]
}

mkdir -p "$account"
rm -f waited
[ "$(cat "$account/registered" 2>/dev/null)" = "$email" ] || register
days=30
[ ! -s "$certificate" ] || days=$((($(seconds "$certificate" enddate) - $(seconds "$certificate" startdate)) / 3 / 86400))
force=
[ ! -e renew-now ] || force=--force
# An authority may have forgotten the account.
issue || { grep -q 'no account associated' client.log && register && issue; } || fail "no certificate from $directory: $(why)"
rm -f renew-now
find "$account/$first" -name 'cert-*.pem' -mtime +90 -delete 2>/dev/null
cat "$certificate" "$key" >"$new" || fail "the certificate of $account cannot be read"
if cmp -s "$new" "$served"; then rm -f "$new"; note ok; exit 0; fi
[ "$(openssl x509 -noout -pubkey -in "$certificate")" = "$(openssl pkey -pubout -in "$key")" ] || fail "the new certificate does not fit its key"
sed "s,$served,$new,g" "$config" >check.cfg
haproxy -c -q -f check.cfg >check.log 2>&1 || fail "HAProxy refuses the new certificate: $(grep -F '[ALERT]' check.log | tail -n 1)"
rm -f check.cfg
print_of() { openssl x509 -noout -fingerprint -sha256 2>/dev/null; }
serves() { # over a new connection, within 10 s
  wanted=$(print_of <"$served") tenths=0
  until [ "$(openssl s_client -connect "$listener" -servername "$first" </dev/null 2>/dev/null | print_of)" = "$wanted" ]; do
    tenths=$((tenths + 5))
    [ "$tenths" -lt 100 ] || return 1
    sleep 0.5
  done
}
cp -p "$served" old.pem && sync "$new" && mv -f "$new" "$served" || fail "$served cannot be replaced"
if systemctl is-active --quiet "$unit" && ! { systemctl reload "$unit" && serves; }; then
  mv -f old.pem "$served"
  systemctl reload "$unit"
  fail "the gateway did not serve the new certificate, and has the old one again"
fi
rm -f old.pem
note ok
