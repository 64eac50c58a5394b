# Make room for files that have not been checked yet; those of a run that was cut go. Parameters: folder new home acme dns_name.
[ -d "$folder/certificates" ] || mkdir -p "$folder/certificates" || exit 1
chmod 0755 "$folder" && chmod 0700 "$folder/certificates" && mkdir -p "$home" || exit 1
rm -rf "$new" "$folder/keys.lock" && mkdir -m 0700 "$new" "$new/certificates" || exit 1
[ -n "$acme" ] || exit 0
umask 077
mkdir -p "$acme" || exit 1
[ -e "$acme/challenges.map" ] || : >"$acme/challenges.map" || exit 1
[ ! -s "$acme/served.pem" ] || exit 0
# HAProxy must run before an authority can ask it: until then it serves the certificate of before, or one that it signs itself.
if [ -s "$folder/certificates/gateway.pem" ]; then
  cp "$folder/certificates/gateway.pem" "$acme/served.pem"
  exit
fi
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj "/CN=$dns_name" -addext "subjectAltName=DNS:$dns_name" \
  -keyout "$acme/key.new" -out "$acme/certificate.new" 2>/dev/null &&
  cat "$acme/certificate.new" "$acme/key.new" >"$acme/served.pem" && rm -f "$acme/key.new" "$acme/certificate.new"
