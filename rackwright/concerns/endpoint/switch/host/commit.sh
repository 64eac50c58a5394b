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
# The questions that it was just asked, for restarts by the host's watch; without them the watch restarts nothing.
if [ -f "${JOB:-}/proof-${home##*/}" ]; then
  mkdir -p -m 0700 proofs && durable_file "proofs/$release_hash" 0600 <"$JOB/proof-${home##*/}" || :
fi
for release in releases/*; do
  # Written since the job began: by a run that waits for it.
  if [ -f "${JOB:-}/digest" ] && [ "$release" -nt "$JOB/digest" ]; then continue; fi
  tail -n "$keep" history | grep -qx "${release##*/}" || rm -rf "$release"
done
for proof in proofs/*; do
  [ -d "releases/${proof##*/}" ] || rm -f "$proof"
done
# What the watch had given up is proven again.
own_state=${home%/endpoints/*}
[ ! -e "$own_state/marks/sick-${home##*/}" ] || systemctl enable --quiet --no-reload "rackwright-${home##*/}.service"
rm -f "$own_state/marks/sick-${home##*/}" "$own_state/marks/watch-${home##*/}"
acts=$own_state/watch/acts-${home##*/}
if [ -f "$acts" ]; then { tail -n 199 "$acts"; printf '%s\n' "$(date +%s) clear - release $release_hash was proven by a run"; } | durable_file "$acts" || :; fi
# Caches of an image that no kept release names.
for caches in caches/*; do
  cat releases/*/needs 2>/dev/null | grep -q "^image .*@sha256:${caches##*/}" || rm -rf "$caches"
done
# What this endpoint has replaced earlier was there to roll back to, and is one release too far now.
for mark in "${home%/*}"/*/replaced-by; do
  if [ -f "$mark" ] && grep -qxF "${home##*/}" "$mark"; then rm -rf "${mark%/*}"; fi
done
