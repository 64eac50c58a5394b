"""The files that an image of one digest consists of, as the lock file lists them: manifests, configuration, layers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Architectures of settings, as images name them."""
BLOBS = "blobs/sha256"
"""Folder of an OCI image layout in which they lie by their SHA-256."""


@dataclass(frozen=True)
class ImageFile:
    """One file of an image; its name is its SHA-256."""

    sha256: str
    size: int
    kind: str = ""
    """Media type of a manifest or index; empty for configuration and layers."""
    machine: str = ""
    """Architecture that needs it, as images name them (`amd64`); empty where all do."""

    @property
    def path(self) -> str:
        """Return its path in an OCI image layout."""
        return f"{BLOBS}/{self.sha256}"

    @property
    def at(self) -> str:
        """Return where its registry has it, below the repository's address."""
        return f"{'manifests' if self.kind else 'blobs'}/sha256:{self.sha256}"


def for_machine(files: Iterable[ImageFile], machine: str) -> tuple[ImageFile, ...]:
    """Return the files that one architecture needs: small ones first, so that every host knows soon what it waits for.

    Empty where the image is for other architectures alone.
    """
    found = [file for file in files if file.machine in ("", machine)]
    if all(file.kind for file in found):
        return ()
    return tuple(sorted(found, key=lambda file: (file.kind == "", file.size, file.sha256)))
