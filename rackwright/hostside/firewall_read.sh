# Print the filter tables of both families and both backends, and the unit that puts our rules back.
# Parameters: paths, unit, guard, home (of the endpoints).
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
# Where each endpoint listens, and would again if it went back.
for own in "$home"/*; do
  [ -f "$own/replaced-by" ] && continue
  for pointer in current proven; do
    [ -f "$own/$pointer/spec.json" ] && printf '%s\n' "$pointer ${own##*/} $(base64 -w0 <"$own/$pointer/spec.json")"
  done
done
for path in $paths; do show "$path"; done
printf '%s\n' "enabled=$(systemctl is-enabled "$unit" 2>/dev/null)"
printf '%s\n' "active=$(systemctl is-active "$unit" 2>/dev/null)"
printf '%s\n' "guard=$(systemctl is-active "$guard" 2>/dev/null)"
exit 0
