# Print each address of the host with its interface and the speed in Mbit/s that the interface says, or -.
ip -o address show scope global up 2>/dev/null | while read -r _ interface family address _; do
  case $family in inet | inet6) ;; *) continue ;; esac
  interface=${interface%%@*} speed=
  read -r speed <"/sys/class/net/$interface/speed" 2>/dev/null || :
  case $speed in '' | *[!0-9]*) speed=- ;; esac
  printf 'link %s %s %s\n' "$interface" "$address" "$speed"
done
# The ports at which it hands something on: each is open to the takers of one run, as long as a job of that run lasts.
! command -v nft >/dev/null || nft list tables inet 2>/dev/null | sed -n 's/^table inet rackwright_hand_on_\([0-9]*\)$/hands-on \1/p'
