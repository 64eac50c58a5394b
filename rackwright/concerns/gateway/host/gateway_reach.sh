# Print whether the gateway answers, has an endpoint's server up, and reaches its port over a new connection, and from which address.
# Parameters: health (URL) socket at (ADDRESS:PORT) seconds.
servers() {
  # shellcheck disable=SC2016 - Perl's own variables
  perl -MIO::Socket::UNIX -e 'alarm 5; $haproxy = IO::Socket::UNIX->new(Peer => $ARGV[0]) or exit 1;
    print $haproxy "show stat\n"; $haproxy->shutdown(1); print while <$haproxy>' "$socket" 2>/dev/null
}
state() { # the state of the server at an address, by the names of the columns
  awk -F , -v at="$1" 'NR == 1 { sub(/^# /, ""); for (i = 1; i <= NF; i++) column[$i] = i; next }
    $column["addr"] == at { print $column["status"]; exit }'
}
ask() { curl --silent --insecure --noproxy '*' --max-time 5 --output /dev/null --write-out "$1" "$2"; }
tries=0
while :; do
  healthz=$(ask '%{http_code}' "$health")
  server=$(servers | state "$at")
  case $healthz:$server in 200:UP*) break ;; esac
  tries=$((tries + 1))
  [ "$tries" -lt "$seconds" ] || break
  sleep 1
done
printf '%s\n' "healthz=$healthz" "server=$server"
ask 'endpoint=%{http_code}\nsource=%{local_ip}\n' "http://$at/health"
exit 0
