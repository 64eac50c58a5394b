# A function that writes when a certificate ends, for node_exporter: `metrics CERTIFICATE FOLDER PLACE`. The folder may be another user's,
# who could put a link at any name that is there: the file is made by the open that also writes it (-C). PLACE keeps its path.
metrics() (
  [ -d "$2" ] || return 0
  end=$(openssl x509 -noout -enddate -in "$1" 2>/dev/null | cut -d = -f 2)
  [ -n "$end" ] || return 0
  new=$(mktemp -u "$2/.rackwright-gateway.prom.XXXXXX") || return 1
  umask 022
  set -C
  printf '%s\n' '# HELP rackwright_gateway_certificate_end_time_seconds When the certificate of this gateway ends.' \
    '# TYPE rackwright_gateway_certificate_end_time_seconds gauge' \
    "rackwright_gateway_certificate_end_time_seconds $(date -d "$end" +%s)" >"$new" &&
    mv -fT "$new" "$2/rackwright-gateway.prom" && set +C && printf '%s\n' "$2/rackwright-gateway.prom" >"$3"
)
