"""GRUB on a host that boots no kernel of its own: a menu of what is in /boot, and a choice at each boot.

grub-editenv, grub-reboot and grub-set-default are Debian's; `uname -r` says the kernel that was chosen.
"""

from __future__ import annotations

from rackwright_lab.hosts.host import Host

CHOSEN = "/run/rackwright-lab/kernel"
UPDATE = """\
#!/bin/sh
# Stand-in of update-grub: the menu as grub-mkconfig writes it on Debian, the newest kernel first.
for file in /etc/default/grub.d/*.cfg; do [ ! -f "$file" ] || . "$file"; done
kernels=$(ls /boot | sed -n 's/^vmlinuz-//p' | sort -rV)
entry() { printf "%smenuentry '%s' --class os \\$menuentry_id_option '%s' {\\n%s}\\n" "$1" "$2" "$3" "$1"; }
{
    echo "set default=\\"${GRUB_DEFAULT:-0}\\""
    entry "" "Debian GNU/Linux" gnulinux-simple-lab
    echo "submenu 'Advanced options for Debian GNU/Linux' \\$menuentry_id_option 'gnulinux-advanced-lab' {"
    for kernel in $kernels; do
        entry "	" "Debian GNU/Linux, with Linux $kernel" "gnulinux-$kernel-advanced-lab"
        entry "	" "Debian GNU/Linux, with Linux $kernel (recovery mode)" "gnulinux-$kernel-recovery-lab"
    done
    echo "}"
} >/boot/grub/grub.cfg
"""
BOOT = f"""\
#!/bin/sh
# What GRUB does at a boot: the entry that is to be booted once, else the default; the newest kernel is the first entry.
value() {{ grub-editenv /boot/grub/grubenv list | sed -n "s/^$1=//p"; }}
entry=$(value next_entry)
if [ -n "$entry" ]; then grub-editenv /boot/grub/grubenv unset next_entry
elif grep -q '^set default="saved"' /boot/grub/grub.cfg; then entry=$(value saved_entry)
fi
kernel=$(printf %s "$entry" | sed -n 's/.*gnulinux-\\(.*\\)-advanced-lab/\\1/p')
mkdir -p {CHOSEN.rpartition("/")[0]}
echo "${{kernel:-$(ls /boot | sed -n 's/^vmlinuz-//p' | sort -V | tail -n 1)}}" >{CHOSEN}
"""
UNAME = f"""\
#!/bin/sh
[ "$*" = -r ] && [ -r {CHOSEN} ] && exec cat {CHOSEN}
exec /bin/uname "$@"
"""
UNIT = """\
[Unit]
Description=Choose the kernel that this host says it runs
DefaultDependencies=no
After=local-fs.target
Before=sysinit.target

[Service]
Type=oneshot
ExecStart=/usr/lib/rackwright-lab/grub

[Install]
WantedBy=sysinit.target
"""
PROGRAMS = {
    "usr/sbin/update-grub": UPDATE,
    "usr/sbin/grub-probe": "#!/bin/sh\n",
    "usr/lib/rackwright-lab/grub": BOOT,
    "usr/local/bin/uname": UNAME,
}
"""Paths below the host's root; grub-probe finds /boot/grub on no RAID and no volume."""


def install_grub(host: Host) -> str:
    """Give a host GRUB, with the kernel that runs as its only one; returns that kernel."""
    host.run("apt-get -q update && apt-get -q -y install --no-install-recommends grub2-common", timeout=300)
    for path, text in PROGRAMS.items():
        (host.root / path).parent.mkdir(parents=True, exist_ok=True)
        (host.root / path).write_text(text)
        (host.root / path).chmod(0o755)
    (host.root / "etc/systemd/system/rackwright-lab-grub.service").write_text(UNIT)
    make = (
        "mkdir -p /boot/grub && : >/boot/vmlinuz-$(uname -r) && grub-editenv /boot/grub/grubenv create && update-grub"
    )
    host.run(f"{make} && systemctl daemon-reload && systemctl -q enable rackwright-lab-grub")
    return host.run("uname -r").stdout.strip()
