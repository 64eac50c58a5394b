"""Verified files: hashing, and telling without reading whether a file is still the verified one."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from rackwright.hostside.fetch_model.hub import File

PIECE = 8 << 20
CLOCK_TICK = 1.1
"""Seconds, and a little more, in which a server may give two writes the same time."""
LATELY = 600
"""Seconds by which a server's clock may differ from ours."""


def digests(path: Path, still_working: Callable[[], None]) -> tuple[str, str]:
    """SHA-256, and git's blob hash, which is what the hub publishes of small files."""
    sha256, blob = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as handle:
        while piece := handle.read(PIECE):
            sha256.update(piece)
            blob.update(piece)
            still_working()
    return sha256.hexdigest(), blob.hexdigest()


def verified(
    file: File, path: Path, still_working: Callable[[], None], before: Mapping[Path, File] | None = None
) -> File | None:
    """What the manifest says of a file whose bytes are the published ones, or None.

    Times and inode are those from before the reading: a write meanwhile, or later, does not go unseen.
    before: what `file_times` has seen of it.
    """
    if path.is_symlink() or not path.is_file() or path.stat().st_size != file["size"]:
        return None
    seen = (before or {}).get(path) or file_times([path])[path]
    sha256, blob = digests(path, still_working)
    right = sha256 == file["sha256"] if file["sha256"] else blob == file["blob"]
    return {**file, "sha256": sha256, **seen} if right else None


def file_times(paths: Iterable[Path]) -> dict[Path, File]:
    """Times and inodes of files, before any is read.

    After a write in this very moment, the next one might leave the same times: one pause for all of them.
    """
    seen = {path: _stat(path) for path in paths if path.is_file()}
    if any(not roots_own(path) and abs(time.time() - own.st_ctime) < LATELY for path, own in seen.items()):
        time.sleep(CLOCK_TICK)
    return {
        path: {"mtime_ns": own.st_mtime_ns, "ctime_ns": own.st_ctime_ns, "inode": own.st_ino}
        for path, own in seen.items()
    }


def _stat(path: Path) -> os.stat_result:
    with path.open("rb") as handle:  # NFS asks the server for them when a file is opened
        return os.fstat(handle.fileno())


def after_rename(noted: File, path: Path) -> File:
    """What the manifest says of a file after it was renamed or linked, which changes its ctime only."""
    return {**noted, "ctime_ns": path.lstat().st_ctime_ns}


def closed(noted: File) -> File:
    """What the manifest says of a file in a folder that only root may write to: its ctime says nothing more there.

    A backup, a link or another label changes it, and 65 GB would be hashed again.
    """
    return {**noted, "ctime_ns": None}


def unchanged(noted: File, path: Path) -> bool:
    """Whether a file still is the verified one, by size, times and inode: hashing 65 GB takes minutes.

    Whoever may write to a file sets its mtime as they like, and never its ctime.
    """
    try:
        seen = path.lstat()
    except OSError:
        return False
    same = (seen.st_size, seen.st_mtime_ns, seen.st_ino) == (noted["size"], noted["mtime_ns"], noted["inode"])
    return same and noted["ctime_ns"] in (None, seen.st_ctime_ns)


def is_read_only(folder: Path) -> bool:
    """Whether not even root may write to a folder: a file system that is mounted so, or a server that refuses it."""
    return not os.access(folder, os.W_OK)


def is_closed(folder: Path) -> bool:
    """Whether nobody but root can have changed anything in a folder."""
    return all(map(roots_own, [folder, *folder.rglob("*")]))


def roots_own(path: Path) -> bool:
    """Whether root, as whom this runs, owns a file or folder, and nobody else may write to it."""
    seen = path.lstat()
    return seen.st_uid == os.geteuid() and (path.is_symlink() or not seen.st_mode & 0o022)


def close(folder: Path) -> None:
    """Let everybody read a folder or a file, the server's user in the container too, and only root write."""
    for path in [folder, *folder.rglob("*")]:
        # A server of a shared store may not let root change whose a file is.
        with suppress(PermissionError):
            if not path.is_symlink():
                _close(path)


def _close(path: Path) -> None:
    """What is right already is left alone: the call changes the ctime, by which other hosts know a file."""
    seen = path.stat()
    if seen.st_uid != os.geteuid() and os.geteuid() == 0:
        os.chown(path, 0, 0)
    wanted = (seen.st_mode | (0o755 if path.is_dir() else 0o444)) & ~0o022
    if wanted != seen.st_mode:
        path.chmod(wanted)


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
