# Hand the common address over: sh hand-over [end]. Variables: address port seconds admin (HAProxy's socket).
# New connections wait, since a client's kernel asks again. Open requests have some seconds to end; what is open
# then is closed while this host still has the address: otherwise its client would wait for an answer that cannot come.
nft delete table inet rackwright_hand_over 2>/dev/null
[ -n "$(ip -4 -o address show to "$address/32")" ] || exit 0
close() { ss -K -t src "$address" >/dev/null 2>&1; }
# A keepalived that was killed has left the address here, and the other gateway takes it now.
[ "$1" != end ] || { close; exit 0; }
nft -f - <<END
table inet rackwright_hand_over {
  chain input {
    type filter hook input priority -300
    ip daddr $address tcp dport $port tcp flags & (syn | ack) == syn drop
  }
}
END
requests() { # those that are open; HAProxy's own are not of its frontend
  # shellcheck disable=SC2016 - Perl's own variables
  perl -MIO::Socket::UNIX -e 'alarm 1; $haproxy = IO::Socket::UNIX->new(Peer => $ARGV[0]) or exit 1;
    print $haproxy "show sess\n"; $haproxy->shutdown(1); print while <$haproxy>' "$admin" 2>/dev/null | grep -c ' fe=gateway '
}
ends=$(($(date +%s) + seconds))
while [ "$(requests)" != 0 ] && [ "$(date +%s)" -lt "$ends" ]; do sleep 0.1; done
close
exit 0
