"""Removing folders in which something of this machine may be mounted."""

from __future__ import annotations

import shutil
from pathlib import Path

from rackwright_lab.machine.shell import LabError, run

MOUNTS = Path("/proc/self/mountinfo")
TARGET = 4
"""Field of a row of MOUNTS with the mount point (proc(5))."""


def remove_tree(folder: Path) -> None:
    """Remove a folder, if it exists.

    What a killed build has left mounted in it, such as this machine's own /dev/shm, is unmounted first and keeps its
    files. Raises LabError, and removes nothing, when something stays mounted.
    """
    for path in mounted_in(folder):
        run("umount", "--lazy", path, check=False)
    if remaining := mounted_in(folder):
        raise LabError(f"{remaining[0]} is mounted and stays so; next: umount {remaining[0]}")
    if folder.exists():
        shutil.rmtree(folder)


def mounted_in(folder: Path) -> list[Path]:
    """Return what is mounted on a folder or below it, the deepest first."""
    targets = [_plain(row.split()[TARGET]) for row in MOUNTS.read_text().splitlines()]
    inside = [path for path in targets if path.is_relative_to(folder.resolve())]
    return sorted(inside, key=lambda path: len(path.parts), reverse=True)


def _plain(written: str) -> Path:
    """Undo the kernel's escapes: it writes blanks and the like as three octal digits."""
    return Path(written.encode().decode("unicode_escape").encode("latin-1").decode())
