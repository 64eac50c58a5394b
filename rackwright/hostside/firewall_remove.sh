# Take away our firewall rules, and what puts them back. Parameters: tag, paths, unit.
systemctl disable --quiet --now "$unit" 2>/dev/null
for command in iptables ip6tables; do
  now=$("$command-save" -t filter 2>/dev/null) || continue
  ours=$(printf '%s\n' "$now" | sed -n "/ --comment \"$tag/s/^-A /-D /p")
  [ -n "$ours" ] || continue
  printf '*filter\n%s\nCOMMIT\n' "$ours" | "$command-restore" --wait=10 --noflush || exit 1
done
rm -f $paths
rmdir --ignore-fail-on-non-empty /etc/rackwright 2>/dev/null
systemctl daemon-reload
