# The kernel that runs is proven: GRUB boots it from now on, as its own settings say. Parameter: kernel. It stands behind
# driver_kernel.sh.
[ -e "$choice" ] || exit 0
fail() { printf '%s\n' "$*" >&2; exit 1; }
[ "$(uname -r)" = "$kernel" ] || fail "the host runs $(uname -r), and not $kernel, which came with its driver"
entry=$(entry_of "$kernel")
[ -n "$entry" ] || fail "$menu has no entry of the kernel $kernel; next: update-grub"
grub-set-default "$entry" || fail "grub-set-default has failed"
rm -f "$choice"
update-grub >/dev/null 2>&1 || fail "update-grub has failed; next, on this host: update-grub"
