# Mark a release as proven and remove all but the last `keep` proven ones.
# Parameters: home release_hash binding (its text) keep.
set -e
cd "$home"
{ grep -vx "$release_hash" history 2>/dev/null || true; printf '%s\n' "$release_hash"; } | durable_file "$home/history"
printf %s "$binding" | durable_file "$home/proven-binding"
# A key that the proven binding does not name was there to roll back to.
named=$(sed -n 's/^KEY=//p' "$home/proven-binding")
for key in "$home"/keys/*; do
  [ "${key##*/}" = "$named" ] || rm -f "$key"
done
[ -n "$named" ] || rm -rf "$home/keys" "$home/keyed"
durably_gone "$home/replaced-by"
durable_link "$home/proven" "releases/$release_hash"
for release in releases/*; do
  tail -n "$keep" history | grep -qx "${release##*/}" || rm -rf "$release"
done
# Caches of an image that no kept release names.
for caches in caches/*; do
  cat releases/*/needs 2>/dev/null | grep -q "^image .*@sha256:${caches##*/}" || rm -rf "$caches"
done
# What this endpoint has replaced earlier was there to roll back to, and is one release too far now.
for mark in "${home%/*}"/*/replaced-by; do
  if [ -f "$mark" ] && grep -qxF "${home##*/}" "$mark"; then rm -rf "${mark%/*}"; fi
done
