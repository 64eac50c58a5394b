# Take away our firewall rules in every table that may have them, and what puts them back.
# Parameters: tag unit units files, watch (the timer and its service), runner (its files), watched (a folder).
# The timer also looks at the endpoints in that folder.
[ -z "$(ls -A "$watched" 2>/dev/null)" ] || watch='' runner=''
# shellcheck disable=SC2086 - a list of units
systemctl disable --quiet --now --no-reload "$unit" $watch rackwright-watch.trace.service 2>/dev/null
! command -v nft >/dev/null || ! nft list table inet rackwright >/dev/null 2>&1 || nft delete table inet rackwright || exit 1
for command in iptables ip6tables iptables-legacy ip6tables-legacy iptables-nft ip6tables-nft; do
  command -v "$command-save" >/dev/null || continue
  # The legacy commands load kernel modules when asked about an unused table.
  case $command in
    ip6*-legacy) grep -qx filter /proc/net/ip6_tables_names 2>/dev/null || continue ;;
    *-legacy) grep -qx filter /proc/net/ip_tables_names 2>/dev/null || continue ;;
    ip6tables | ip6tables-nft) [ -e /proc/net/if_inet6 ] || continue ;;
  esac
  now=$("$command-save" -t filter) || { printf '%s\n' "$command-save failed, so its rules stay" >&2; exit 1; }
  ours=$(printf '%s\n' "$now" | sed -n "/ --comment \"$tag/s/^-A /-D /p")
  [ -z "$ours" ] || printf '*filter\n%s\nCOMMIT\n' "$ours" | "$command-restore" --wait=10 --noflush || exit 1
  chain=$("$command-save" -t mangle 2>/dev/null | sed -n "/^-A PREROUTING .* --comment \"$tag/s/^-A /-D /p; s/^:RACKWRIGHT .*/:RACKWRIGHT - [0:0]/p")
  case $chain in
  *RACKWRIGHT*) printf '*mangle\n%s\n-X RACKWRIGHT\nCOMMIT\n' "$chain" | "$command-restore" --wait=10 --noflush || exit 1 ;;
  esac
done
# shellcheck disable=SC2086 - a list of paths
rm -f $files $runner "$units"/rackwright-*.service.d/rackwright-firewall.conf || exit 1
rmdir --ignore-fail-on-non-empty "$units"/rackwright-*.service.d /etc/rackwright/watch.d 2>/dev/null
rmdir --ignore-fail-on-non-empty /etc/rackwright 2>/dev/null
systemctl daemon-reload
