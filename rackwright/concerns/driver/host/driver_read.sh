# NVIDIA's driver as packages, what would refuse another one, and what is staged. Without a wanted version nothing is asked.
# Parameters: version (may be empty), names (an expression: how names of its packages begin), home, repository (address of NVIDIA's).
[ -n "$version" ] || exit 0
kernel=$(uname -r)
printf '%s\n' "running=$kernel"
# shellcheck disable=SC2016 - dpkg-query's own variables
dpkg-query -W -f '${Package} ${db:Status-Want} ${db:Status-Status} ${Version}\n' '*' 2>/dev/null |
  awk -v names="^($names)" '$3 != "installed" { next }
    $1 ~ names && $1 !~ /container/ { print "package " $1 " " $2 " " $4 }
    $1 ~ /^linux-(image|headers)/ && $2 == "hold" { print "heldkernel " $1 }
    $1 ~ /^linux-image-[a-z]/ && $1 !~ /^linux-image-unsigned|-dbg$/ { print "kernels " $1 }'
[ ! -d /sys/module/nouveau ] || echo nouveau=yes
[ ! -e "/lib/modules/$kernel/build" ] || echo headers=yes
# The kernel of the next boot, where it is another one than now and no module could be built for it.
next=$(find /boot -maxdepth 1 -name 'vmlinuz-[0-9]*' 2>/dev/null | sed 's/.*vmlinuz-//' | sort -V | tail -n 1)
if [ -n "$next" ] && [ "$next" != "$kernel" ] && [ ! -e "/lib/modules/$next/build" ] &&
  ! grep -qs '^GRUB_DEFAULT=["'\'']\{0,1\}[^0"'\'']' /etc/default/grub /etc/default/grub.d/*.cfg; then printf '%s\n' "next=$next"; fi
for file in /sys/firmware/efi/efivars/SecureBoot-*; do
  # Four bytes of attributes, then the value.
  [ ! -r "$file" ] || printf '%s\n' "secureboot=$(od -An -tu1 -j4 -N1 "$file" | tr -d ' ')"
done
! have mokutil || ! mokutil --test-key /var/lib/shim-signed/mok/MOK.der 2>/dev/null | grep -q 'already enrolled' || echo mok=enrolled
[ ! -e /etc/dgx-release ] || echo dgx=yes
product=
[ ! -r /sys/class/dmi/id/product_name ] || read -r product </sys/class/dmi/id/product_name
printf '%s\n' "product=$product"
largest=
for file in /boot/initrd.img-*; do
  [ ! -f "$file" ] || largest=$(stat -c %s /boot/initrd.img-* | sort -n | tail -n 1)
  break
done
[ -z "$largest" ] || printf '%s\n' "initrd=$largest" "bootfree=$(df -k --output=avail /boot | tail -n 1 | tr -d ' ')"
! grep -rhs -e '^deb' -e '^URIs:' /etc/apt/sources.list /etc/apt/sources.list.d | grep -qF "$repository" || echo repository=yes
show "$home/staged"
show "$home/failed"
exit 0
