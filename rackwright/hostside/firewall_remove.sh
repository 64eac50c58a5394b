# Take away our firewall rules in every table that may have them, and what puts them back. Parameters: tag, paths, unit.
systemctl disable --quiet --now "$unit" 2>/dev/null
for command in iptables ip6tables iptables-legacy ip6tables-legacy iptables-nft ip6tables-nft; do
  command -v "$command-save" >/dev/null || continue
  # The legacy commands load kernel modules when asked about a table that nobody uses.
  case $command in
    ip6*-legacy) grep -qx filter /proc/net/ip6_tables_names 2>/dev/null || continue ;;
    *-legacy) grep -qx filter /proc/net/ip_tables_names 2>/dev/null || continue ;;
    ip6tables | ip6tables-nft) [ -e /proc/net/if_inet6 ] || continue ;;
  esac
  now=$("$command-save" -t filter) || { printf '%s\n' "$command-save failed, so its rules stay" >&2; exit 1; }
  ours=$(printf '%s\n' "$now" | sed -n "/ --comment \"$tag/s/^-A /-D /p")
  [ -n "$ours" ] || continue
  printf '*filter\n%s\nCOMMIT\n' "$ours" | "$command-restore" --wait=10 --noflush || exit 1
done
# shellcheck disable=SC2086 - a list of paths
rm -f $paths || exit 1
rmdir --ignore-fail-on-non-empty /etc/rackwright 2>/dev/null
systemctl daemon-reload
