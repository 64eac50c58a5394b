"""Debian's packages for lab hosts on a machine without a network: those that the bare base system has fetched."""

from __future__ import annotations

import shutil
from pathlib import Path

from rackwright_lab.servers import aptrepo

ARCHIVES = Path("var/cache/apt/archives")
SOURCE = "deb [trusted=yes] https://mirror.lab.example/debian ./\n"


def provide(folder: Path, base: Path) -> None:
    """Lay the packages in the apt archive of a base system out as a repository, with its index."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in (base / ARCHIVES).glob("*.deb"):
        target = folder / package.name
        if not target.exists():
            shutil.copy(package, target)
    aptrepo.index(folder, ".", ".")


def use(root: Path) -> None:
    """Let a host's root file system install from it alone."""
    (root / "etc/apt/sources.list").write_text(SOURCE)
