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


def read_manifest(folder: Path, records: Path) -> dict[str, Any] | None:
    """What this host has verified of a folder; None when there is no such record, or others may write to the folder.

    records: where root keeps it, by the folder's name. The manifest in the folder itself is a mark, and says nothing:
    whoever may write there could write one for other bytes, and a shared folder's is another host's.
    """
    try:
        found = json.loads((records / f"{folder.name}.json").read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or (found.get("version"), found.get("folder")) != (1, str(folder)):
        return None
    return found if is_read_only(folder) or all(map(roots_own, [folder, *folder.rglob("*")])) else None


def is_read_only(folder: Path) -> bool:
    """Whether not even root may write to a folder: a file system that is mounted so, or a server that refuses it."""
    return not os.access(folder, os.W_OK)


def roots_own(path: Path) -> bool:
    """Whether root, as whom this runs, owns a file or folder, and nobody else may write to it."""
    seen = path.lstat()
    return seen.st_uid == os.geteuid() and (path.is_symlink() or not seen.st_mode & 0o022)


def same_bytes(one: File, other: File) -> bool:
    """Whether two entries of a file do not contradict each other, and share a hash."""
    hashes = [(one.get(key), other.get(key)) for key in ("sha256", "blob")]
    known = [(mine, theirs) for mine, theirs in hashes if mine and theirs]
    return one["size"] == other["size"] and bool(known) and all(mine == theirs for mine, theirs in known)


def is_plain(path: str) -> bool:
    """Whether a name that the hub gives leads to a file below the model's folder, and is not one of ours."""
    parts = path.split("/")
    plain = all(part not in ("", ".", "..") for part in parts) and path.isprintable() and "\\" not in path
    return plain and not any(part.startswith((".rackwright", ".parts")) for part in parts)


def write_manifest(folder: Path, records: Path, manifest: dict[str, Any]) -> None:
    """Note what was verified: in the host's own record, and as a mark in a folder that has none of these bytes yet."""
    there = _json(folder / MANIFEST)
    same = all(there.get(key) == manifest[key] for key in ("repository", "commit", "files", "include", "exclude"))
    # Another host that shares the folder has its own record, and nothing to verify again.
    if not same and not is_read_only(folder):
        _write(folder / MANIFEST, manifest)
    _write(records / f"{folder.name}.json", {**manifest, "folder": str(folder)})


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: Path, values: dict[str, Any]) -> None:
    """Replace a file so that after a power cut the old one is there, or the new one."""
    new = path.with_name(f"{path.name}.new")
    with new.open("w") as handle:
        json.dump(values, handle, indent=1)
        handle.flush()
        os.fsync(handle.fileno())
    new.chmod(0o644)
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
