"""Verified files: hashing, the manifest, and telling without reading whether a file is still the verified one."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rackwright.hostside.fetch_model.hub import File

MANIFEST = ".rackwright.json"
PIECE = 8 << 20


def digests(path: Path, beat: Callable[[], None]) -> tuple[str, str]:
    """SHA-256, and git's blob hash, which is what the hub publishes of small files."""
    sha256, blob = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as handle:
        while piece := handle.read(PIECE):
            sha256.update(piece)
            blob.update(piece)
            beat()
    return sha256.hexdigest(), blob.hexdigest()


def verified(file: File, path: Path, beat: Callable[[], None]) -> str | None:
    """The file's SHA-256 if its bytes are the published ones, or None."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size != file["size"]:
        return None
    sha256, blob = digests(path, beat)
    right = sha256 == file["sha256"] if file["sha256"] else blob == file["blob"]
    return sha256 if right else None


def entry(file: File, path: Path, sha256: str) -> File:
    """What the manifest says of a verified file."""
    seen = path.stat()
    return {**file, "sha256": sha256, "mtime_ns": seen.st_mtime_ns, "inode": seen.st_ino}


def unchanged(noted: File, path: Path) -> bool:
    """Whether a file still is the verified one, by size, time and inode: hashing 65 GB takes minutes."""
    try:
        seen = path.lstat()
    except OSError:
        return False
    return (seen.st_size, seen.st_mtime_ns, seen.st_ino) == (noted["size"], noted["mtime_ns"], noted["inode"])


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """A folder's manifest; None when there is none that can be read."""
    try:
        found = json.loads((folder / MANIFEST).read_text())
        return found if isinstance(found, dict) and found.get("version") == 1 else None
    except (OSError, ValueError):
        return None


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Replace the manifest atomically."""
    new = folder / (MANIFEST + ".new")
    with new.open("w") as handle:
        json.dump(manifest, handle, indent=1)
        handle.flush()
        os.fsync(handle.fileno())
    new.chmod(0o644)
    new.replace(folder / MANIFEST)
