# Listen for another router with the same number, before this host announces it for the first time: two owners of an
# address lose each other's clients. Parameters: unit router_id seconds own others (addresses of the gateways).
! systemctl is-active --quiet "$unit" || exit 0
# shellcheck disable=SC2016 - Perl's own variables
perl -MSocket -e '
  my ($id, $seconds, $own, @others) = @ARGV;
  socket(my $vrrp, AF_INET, SOCK_RAW, 112) or die "no raw socket: $!\n";
  # IP_ADD_MEMBERSHIP: announcements go to 224.0.0.18 (RFC 5798, 5.1.1.2) where they are not unicast.
  setsockopt($vrrp, 0, 35, inet_aton("224.0.0.18") . inet_aton($own)) or warn "no multicast: $!\n";
  my ($ends, %known) = (time + $seconds, map { $_ => 1 } $own, @others);
  while ((my $left = $ends - time) > 0) {
    my $ready = ""; vec($ready, fileno($vrrp), 1) = 1;
    select($ready, undef, undef, $left) > 0 or last;
    recv($vrrp, my $packet, 2048, 0);
    next if length($packet) < 22;
    my $header = 4 * (ord($packet) & 15);
    my $from = inet_ntoa(substr($packet, 12, 4));
    next if $known{$from} or length($packet) < $header + 2 or ord(substr($packet, $header + 1, 1)) != $id;
    print STDERR "$from announces virtual_router_id $id; choose another number in group_vars/gateway.yml\n"; exit 1;
  }' "$router_id" "$seconds" "$own" $others
