# Let only the release be proven that the pointer names: another run may have rolled back. Parameters: home release.
[ "$(basename "$(readlink "$home/current")")" = "$release" ] && exit 0
said=$(sed -n 's/^reason=//p' "$home/last-switch" 2>/dev/null)
printf '%s\n' "release $release is no longer the one that the endpoint points at${said:+; the last switch ended with: $said}" | tee "$reason"
exit 1
