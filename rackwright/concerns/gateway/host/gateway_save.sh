# Save the states of the servers, so that a reload forgets no drain: sh save-servers. Parameters: socket servers config.
# HAProxy would take a server's port from there before the one of its file, so a server that has moved has no state.
# shellcheck disable=SC2016 - Perl's and awk's own variables
perl -MIO::Socket::UNIX -e 'alarm 5; $haproxy = IO::Socket::UNIX->new(Peer => $ARGV[0]) or exit 1;
  print $haproxy "show servers state\n"; $haproxy->shutdown(1); print while <$haproxy>' "$socket" 2>/dev/null |
  awk 'FNR == 1 { files++ }
    files == 1 && $1 == "backend" { backend = $2 }
    files == 1 && $1 == "server" {
      gsub(/[][]/, "", $3)
      for (n = 4; n < NF; n++) if ($n == "agent-port") place[backend, $2] = $3 " " $(n + 1)
    }
    files == 2 && (!/^[0-9]+ / || place[$2, $4] == $5 ":" $19 " " $25)' "$config" - >"$servers.new" 2>/dev/null &&
  [ -s "$servers.new" ] && mv -f "$servers.new" "$servers"
exit 0
