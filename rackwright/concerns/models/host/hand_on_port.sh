# Functions for the port at which a model is handed on: only the hosts that take it reach it, and only as long as the job runs.
# Rackwright's own firewall has another table and another tag, and leaves these alone.
# Parameters: port takers (addresses).
close_port() {
  ! command -v nft >/dev/null || nft delete table inet "rackwright_hand_on_$port" 2>/dev/null
  for command in iptables ip6tables; do
    now=$("$command-save" -t filter 2>/dev/null | sed -n "/ --comment \"rackwright-hand-on:$port\"/s/^-A /-D /p")
    [ -z "$now" ] || printf '*filter\n%s\nCOMMIT\n' "$now" | "$command-restore" --wait=10 --noflush
  done
}
takers_of() { # 4 or 6; prints the takers of that version
  for taker in $takers; do
    case $1$taker in 6*:*) printf '%s\n' "$taker" ;; 6*) ;; 4*:*) ;; 4*) printf '%s\n' "$taker" ;; esac
  done
}
only_takers() { # ip or ip6, their version; prints the line that drops what others send
  those=$(takers_of "$2" | paste -sd , -)
  printf 'fib daddr type local tcp dport %s meta nfproto ipv%s %s drop\n' "$port" "$2" "${those:+$1 saddr != { $those \}}"
}
let_in() { # iptables or ip6tables, 4 or 6; behind the rules of others, so that it never opens what they close
  rules=$(takers_of "$2" | sed "s/.*/-A INPUT -s & -p tcp -m tcp --dport $port -m comment --comment \"rackwright-hand-on:$port\" -j ACCEPT/")
  [ -z "$rules" ] || printf '*filter\n%s\nCOMMIT\n' "$rules" | "$1-restore" --wait=10 --noflush
}
open_port() {
  command -v nft >/dev/null || { echo "nft is missing, by which the port of downloads.hand_on is closed to others; next: apt-get install nftables" >&2; return 1; }
  close_port
  printf 'table inet rackwright_hand_on_%s {\n chain prerouting {\n type filter hook prerouting priority -150; policy accept;\n%s\n%s\n }\n}\n' \
    "$port" "$(only_takers ip 4)" "$(only_takers ip6 6)" | nft -f - || return 1
  let_in iptables 4 && let_in ip6tables 6
}
