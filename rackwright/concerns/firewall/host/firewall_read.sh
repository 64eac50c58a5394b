# Print the filter tables of both families and both backends, our drops, and what puts both back.
# Parameters: paths unit timer guard; home (of the endpoints) units; left (what the kernel showed of ours) repairs (file).
save() { # the name to print, the command
  text=$("$2-save" -t filter) || { printf '%s\n' "$2-save failed: is another tool changing the rules, or nft in the way?" >&2; exit 1; }
  printf '%s\n' "table $1 $(printf '%s\n' "$text" | base64 -w0)"
}
used() { grep -qx filter "$1" 2>/dev/null; }
if have iptables-save; then
  printf '%s\n' "backend=$(iptables -V)"
  save iptables iptables
  # The legacy commands load kernel modules when asked about a table that nobody uses.
  case $(iptables -V) in
  *nf_tables*) used /proc/net/ip_tables_names && have iptables-legacy-save && save iptables-legacy iptables-legacy ;;
  *) have iptables-nft-save && save iptables-nft iptables-nft ;;
  esac
fi
if [ -e /proc/net/if_inet6 ] && have ip6tables-save; then
  save ip6tables ip6tables
  case $(ip6tables -V) in
  *nf_tables*) used /proc/net/ip6_tables_names && have ip6tables-legacy-save && save ip6tables-legacy ip6tables-legacy ;;
  *) have ip6tables-nft-save && save ip6tables-nft ip6tables-nft ;;
  esac
fi
[ -e /proc/net/if_inet6 ] && echo ipv6=yes
# The drops as they were put, as long as the kernel shows what it did then.
drops() { # the command, what the kernel shows now
  [ -f "$left/$1.drops" ] && [ "$2" = "$(cat "$left/$1.dropping")" ] && printf '%s\n' "drops $1 $(base64 -w0 <"$left/$1.drops")"
}
if have nft && nft list tables >/dev/null 2>&1; then
  drops nft "$(nft -s list table inet rackwright 2>/dev/null)"
elif have iptables-save; then
  echo nft=no
  for command in iptables ip6tables; do
    have "$command-save" && drops "$command" "$("$command-save" -t mangle 2>/dev/null | grep -e '^-A .*RACKWRIGHT')"
  done
fi
ip -o addr show dev docker0 scope global 2>/dev/null | while read -r _ _ family address _; do
  case $family in inet) printf '%s\n' "subnet 4 $address" ;; inet6) printf '%s\n' "subnet 6 $address" ;; esac
done
now=$(date +%s)
[ ! -f "$repairs" ] || while read -r when text; do
  [ "$((now - when))" -gt 3600 ] || printf '%s\n' "repair $((now - when)) $(printf %s "$text" | base64 -w0)"
done <"$repairs"
# Where each endpoint listens, and would again if it went back.
for own in "$home"/*; do
  [ -f "$own/replaced-by" ] && continue
  for pointer in current proven; do
    [ -f "$own/$pointer/spec.json" ] && printf '%s\n' "$pointer ${own##*/} $(base64 -w0 <"$own/$pointer/spec.json")"
  done
done
for path in $paths "$units"/rackwright-*.service.d/rackwright-firewall.conf; do
  case $path in *'*'*) continue ;; esac
  show "$path"
done
printf '%s\n' "watched=$(systemctl is-active "$timer" 2>/dev/null)"
printf '%s\n' "enabled=$(systemctl is-enabled "$unit" 2>/dev/null)"
printf '%s\n' "active=$(systemctl is-active "$unit" 2>/dev/null)"
printf '%s\n' "guard=$(systemctl is-active "$guard" 2>/dev/null)"
exit 0
