"""Packages without compression, and their entries in package lists.

Of the eight seconds of a core that Docker's installation takes on a bare host, more than four are xz unpacking
docker.io and containerd.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rackwright_lab.machine.shell import run

LEAST = 1 << 20
"""Bytes of a package that is worth it."""
_SUMS = re.compile(r"^(?:Size|MD5sum|SHA\d+): .*\n?", re.MULTILINE)


def store(archive: Path, target: Path) -> dict[str, str]:
    """Write the larger packages of an apt archive into another one, uncompressed.

    Returns size and SHA-256 by file name, as their entries in a list have them.
    """
    target.mkdir(parents=True, exist_ok=True)
    found = {}
    for package in sorted(archive.glob("*.deb")):
        if package.stat().st_size >= LEAST:
            with tempfile.TemporaryDirectory(dir=target.parent) as tree:
                run("dpkg-deb", "--raw-extract", package, tree)
                run("dpkg-deb", "-Znone", "--build", tree, target / package.name)
            found[package.name] = _sums(target / package.name)
    return found


def _sums(package: Path) -> str:
    with package.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"Size: {package.stat().st_size}\nSHA256: {digest}"


def as_stored(stanza: str, sums: Mapping[str, str]) -> str:
    """Return a package's entry in a list, with size and hash of the stored package where there is one."""
    new = sums.get(file_of(stanza))
    return f"{_SUMS.sub('', stanza).rstrip()}\n{new}" if new else stanza


def file_of(stanza: str) -> str:
    """Return the name that an entry's package has in apt's archive."""
    fields = dict(re.findall(r"^(Package|Version|Architecture): (\S+)$", stanza, re.MULTILINE))
    version = fields.get("Version", "").replace(":", "%3a")
    return f"{fields.get('Package')}_{version}_{fields.get('Architecture')}.deb"
