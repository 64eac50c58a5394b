# Functions for a kernel that comes with a driver: GRUB boots it once, and its default stays the kernel of now until the host is proven.
choice=/etc/default/grub.d/rackwright-driver.cfg
menu=/boot/grub/grub.cfg

# The path of a kernel's entry in GRUB's menu, as grub-reboot takes it; nothing without one.
entry_of() {
  awk -F "'" -v start="gnulinux-$1-advanced-" '
    /^submenu / { inside = $(NF - 1) ">" }
    /^}/ { inside = "" }
    /^[ \t]*menuentry / && index($(NF - 1), start) == 1 { print inside $(NF - 1); exit }' "$menu" 2>/dev/null
}

# The kernel that the plan brings, or one that an earlier try has left and GRUB does not boot yet; nothing for that of now.
kernel_of() {
  new=$(sed -n 's/^Inst linux-image-\(unsigned-\)\{0,1\}\([0-9][^ ]*\) (.*/\2/p' "$1" | sort -V | tail -n 1)
  [ -n "$new" ] || [ ! -e "$choice" ] || new=$(find /boot -name 'vmlinuz-*' | sed 's/.*vmlinuz-//' | sort -V | tail -n 1)
  [ "$new" = "$(uname -r)" ] || printf %s "$new"
}

# A kernel that takes the place of the one of now leaves no way back, and GRUB must be able to forget its choice.
refuse_kernel() {
  by_hand="next: install that kernel first, by hand, and reboot into it"
  over=$(sed -n 's/^Inst linux-image-[^ ]* \[.*/&/p' "$2" | grep -F -- "-$(uname -r) " | cut -d ' ' -f 2)
  [ -z "$over" ] || fail "NVIDIA's driver $version would write over the kernel that runs ($over); $by_hand"
  [ -n "$1" ] || return 0
  for program in grub-reboot grub-set-default grub-editenv grub-probe update-grub; do
    command -v "$program" >/dev/null || fail "NVIDIA's driver $version brings the kernel $1, and this host has no $program, by which GRUB boots it once; $by_hand"
  done
  below=$(grub-probe --target=abstraction /boot/grub 2>&1) || below="what grub-probe does not know: $below"
  [ -z "$below" ] || fail "NVIDIA's driver $version brings the kernel $1, and GRUB cannot boot it once: /boot/grub is on $below, where it writes nothing; $by_hand"
  [ -n "$(entry_of "$(uname -r)")" ] || fail "NVIDIA's driver $version brings the kernel $1, and $menu has no entry of the kernel of now; next: update-grub"
  needed=$(find /boot -name "*-$(uname -r)" -exec du -ck {} + | tail -n 1 | cut -f 1) free=$(df -k --output=avail /boot | tail -n 1 | tr -d ' ')
  [ "$free" -gt "$((${needed:-0} + 2048))" ] || fail "NVIDIA's driver $version brings the kernel $1, which needs $((needed / 1024)) MiB, and /boot has $((free / 1024)) MiB free; next: apt-get autoremove --purge"
}

# Whatever is installed from here on, the host boots the kernel of now.
keep_kernel() {
  [ -n "$1" ] || return 0
  mkdir -p "${choice%/*}"
  echo GRUB_DEFAULT=saved >"$choice" && update-grub >"$log" 2>&1 && grub-set-default "$(entry_of "$(uname -r)")"
}

# The next boot alone is the new kernel's.
boot_once() {
  [ -n "$1" ] || return 0
  entry=$(entry_of "$1")
  [ -n "$entry" ] && grub-reboot "$entry"
}

# The host stays with the kernel of the driver before, which GRUB has as its default.
forget_kernel() { [ ! -e "$choice" ] || grub-editenv - unset next_entry; }
