# Mark a release as proven on a member, since its head has committed it. Argument: the release. Parameters: home.
set -e
cd "$home"
before=$(readlink "$home/proven") || before=
{ grep -vx "$1" history 2>/dev/null || true; printf '%s\n' "$1"; } | durable_file "$home/history"
durable_file "$home/proven-binding" <"$home/binding"
durable_link "$home/proven" "releases/$1"
# Proven already, with another binding: the next release may be staged, and is in no history yet.
[ "$before" != "releases/$1" ] || exit 0
keep=
[ ! -r "$home/keep" ] || read -r keep <"$home/keep" || :
keep=${keep:-2}
for release in releases/*; do
  tail -n "$keep" history | grep -qx "${release##*/}" || rm -rf "$release"
done
