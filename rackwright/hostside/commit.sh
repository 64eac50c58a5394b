# Mark a release as proven and remove all but the last `keep` proven ones.
# Parameters: home release_hash binding (its text) keep.
set -e
cd "$home"
{ grep -vx "$release_hash" history 2>/dev/null || true; printf '%s\n' "$release_hash"; } >history.new
mv history.new history
printf %s "$binding" >proven-binding.new
mv -f proven-binding.new proven-binding
ln -sfn "releases/$release_hash" proven.new
mv -fT proven.new proven
for release in releases/*; do
  tail -n "$keep" history | grep -qx "${release##*/}" || rm -rf "$release"
done
