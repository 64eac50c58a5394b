# Let packages be upgraded again. Parameter: packages.
# shellcheck disable=SC2086 - a list of names
apt-mark unhold $packages >/dev/null 2>&1
for package in $packages; do
  ! apt-mark showhold | grep -qx "$package" || { printf '%s\n' "$package is still held; next: apt-mark unhold $package" >&2; exit 1; }
done
