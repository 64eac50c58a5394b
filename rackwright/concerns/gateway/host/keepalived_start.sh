# Let keepalived check its new file, and take it over. Parameters: unit config new.
trap 'rm -f "$new"' EXIT
if [ -f "$new" ]; then
  keepalived --config-test --use-file="$new" >&2 || exit 1
  mv -f "$new" "$config" || exit 1
fi
systemctl enable --quiet --no-reload "$unit" && systemctl daemon-reload || exit 1
if systemctl is-active --quiet "$unit"; then systemctl reload "$unit"; else systemctl restart "$unit"; fi
# It ends at once where it cannot use the interface.
sleep 2
systemctl is-active --quiet "$unit" && exit 0
journalctl --quiet --output=cat --lines=10 --unit="$unit" --since=-30s >&2
exit 1
