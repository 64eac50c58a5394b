"""Folders in this machine's memory: what is written there never reaches a disk, and goes with the mount."""

from __future__ import annotations

import re
from pathlib import Path

from rackwright_lab.machine.shell import run

# Measured: a host that serves has written 0.2 GiB, and what runs in it takes as much. The rest is for who else works.
PER_HOST = 1 << 30
KEPT_FREE = 6 << 30
MEMINFO = Path("/proc/meminfo")


def has_room(hosts: int, meminfo: Path = MEMINFO) -> bool:
    """Whether this machine has enough memory to spare for the disks of so many hosts."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", meminfo.read_text(), re.MULTILINE)
    return found is not None and int(found[1]) * 1024 >= hosts * PER_HOST + KEPT_FREE


def lay(folder: Path, name: str) -> None:
    """Put a folder in memory; name is what mount and findmnt show as its source."""
    folder.mkdir(parents=True, exist_ok=True)
    if not folder.is_mount():
        # Both are limits and take nothing: preflight counts bytes and inodes, and warns of less than real models need.
        run("mount", "-t", "tmpfs", "-o", "size=200g,nr_inodes=16m,mode=755", name, folder)


def lift(folder: Path) -> None:
    """Take the memory back, with all that is in it; a folder on disk stays as it is."""
    if folder.is_mount():
        run("umount", folder, check=False)
