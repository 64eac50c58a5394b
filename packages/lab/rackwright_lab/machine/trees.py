"""Removing folders in which something of this machine may be mounted."""

from __future__ import annotations

import shutil
from pathlib import Path

from rackwright_lab.machine.shell import LabError, run

MOUNTS = Path("/proc/self/mountinfo")
PLACE = 4
"""Which word of a line of MOUNTS says where it is mounted (proc(5))."""


def remove_tree(folder: Path) -> None:
    """Remove a folder; one that is not there is all right.

    What a killed build has left mounted in it, such as this machine's own /dev/shm, is unmounted first and keeps its
    files. Raises LabError, and removes nothing, when something stays mounted.
    """
    for place in mounted_in(folder):
        run("umount", "--lazy", place, check=False)
    if left := mounted_in(folder):
        raise LabError(f"{left[0]} is mounted and stays so; next: umount {left[0]}")
    if folder.exists():
        shutil.rmtree(folder)


def mounted_in(folder: Path) -> list[Path]:
    """Return what is mounted on a folder or below it, the deepest first."""
    places = [_plain(line.split()[PLACE]) for line in MOUNTS.read_text().splitlines()]
    inside = [place for place in places if place.is_relative_to(folder.resolve())]
    return sorted(inside, key=lambda place: len(place.parts), reverse=True)


def _plain(written: str) -> Path:
    """Undo the kernel's escapes: it writes blanks and the like as three octal digits."""
    return Path(written.encode().decode("unicode_escape").encode("latin-1").decode())
