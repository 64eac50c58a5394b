"""A share whose server squashes root (as NFS's root_squash), served by bindfs: not every kernel can serve NFS.

The server is a root without power over permissions; whatever it makes belongs to an unprivileged user, and stays
so. As with NFS, a lock that one client has keeps the others out.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from rackwright_lab.hosts.host import Host
from rackwright_lab.machine.shell import LabError, run

NO_POWER = ("setpriv", "--inh-caps=-all", "--bounding-set=-all,+sys_admin")
SQUASHED = ("--force-user=nobody", "--force-group=nogroup", "--chown-deny")
LOCKS = ("--multithreaded", "--enable-lock-forwarding")
# FUSE may keep what a file was before a rename for a second; an NFS client knows what it has renamed itself.
FRESH = ("-o", "attr_timeout=0")
OTHER_USER = 1234
"""Owns an export that no user of a client may write to."""

# linux/mount.h. A mount of this machine is not a mount of a host until it is cloned and moved there.
MOVE = """
import ctypes, os, sys
libc, (source, leader, inside) = ctypes.CDLL(None, use_errno=True), sys.argv[1:]
def must(result):
    if result < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
OPEN_TREE, MOVE_MOUNT, HERE, CLONE, NEWNS, EMPTY_PATH = 428, 429, -100, 1, 0x20000, 4
tree = must(libc.syscall(OPEN_TREE, HERE, source.encode(), CLONE))
must(libc.setns(os.open(f"/proc/{leader}/ns/mnt", os.O_RDONLY), NEWNS))
must(libc.syscall(MOVE_MOUNT, tree, b"", HERE, inside.encode(), EMPTY_PATH))
"""


def mount(export: Path, target: Path) -> None:
    """Mount a folder of this machine's as such a share. `unmount` ends its server."""
    run(*NO_POWER, "bindfs", *LOCKS, *FRESH, *SQUASHED, export, target)


def unmount(target: Path) -> None:
    """Unmount it, even while it is in use."""
    run("umount", "--lazy", target)


def mount_in(host: Host, export: Path, inside: str) -> None:
    """Mount it in a lab host, as its /etc/fstab would; its server stays outside. Raises LabError when it is off."""
    leader = host.machine.leader()
    if leader is None:
        raise LabError(f"{host.name} is off")
    with tempfile.TemporaryDirectory() as target:
        mount(export, Path(target))
        try:
            run(sys.executable, "-c", MOVE, target, str(leader), inside)
        finally:
            unmount(Path(target))


def refuse_writes(export: Path) -> None:
    """Stop all writes to it, though everybody reads it."""
    subprocess.run(["chown", "-R", str(OTHER_USER), export], check=True)
