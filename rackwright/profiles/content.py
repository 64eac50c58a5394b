"""A profile's content: its files of settings, the weakest first, and their hash. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

Files = Mapping[str, str]
"""Text by the file's name, the weakest first: the order is part of the content."""


def sha256_of(files: Files) -> str:
    """Return the hash of the files' names and texts, in their order."""
    digest = hashlib.sha256()
    for name, text in files.items():
        digest.update(f"{len(name)} {name} {len(text.encode())}\n{text}".encode())
    return digest.hexdigest()
