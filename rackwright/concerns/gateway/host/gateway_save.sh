# Save the states of the servers, so that a reload forgets no drain: sh save-servers. Parameters: socket servers.
# shellcheck disable=SC2016 - Perl's own variables
perl -MIO::Socket::UNIX -e 'alarm 5; $haproxy = IO::Socket::UNIX->new(Peer => $ARGV[0]) or exit 1;
  print $haproxy "show servers state\n"; $haproxy->shutdown(1); print while <$haproxy>' "$socket" >"$servers.new" 2>/dev/null &&
  mv -f "$servers.new" "$servers"
exit 0
