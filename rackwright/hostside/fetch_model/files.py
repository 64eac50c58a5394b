"""Verified files: hashing, and checks without reading that a file is still the verified one."""

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
"""Seconds by which a server's clock may differ from the host's."""


def digests(path: Path, still_working: Callable[[], None]) -> tuple[str, str]:
    """Return SHA-256 and git's blob hash, which the hub publishes for small files."""
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
    """Return the manifest's entry of a file whose bytes are the published ones, or None.

    Times and inode are those from before the reading: a write during it, or later, is detected.
    before: its entry from `file_times`.
    """
    if path.is_symlink() or not path.is_file() or path.stat().st_size != file["size"]:
        return None
    times = (before or {}).get(path) or file_times([path])[path]
    sha256, blob = digests(path, still_working)
    right = sha256 == file["sha256"] if file["sha256"] else blob == file["blob"]
    return {**file, "sha256": sha256, **times} if right else None


def file_times(paths: Iterable[Path]) -> dict[Path, File]:
    """Return times and inodes of files, before any is read.

    After a write at this moment, the next one might leave the same times: one pause for all of them.
    """
    stats = {path: _stat(path) for path in paths if path.is_file()}
    if any(not roots_own(path) and abs(time.time() - stat.st_ctime) < LATELY for path, stat in stats.items()):
        time.sleep(CLOCK_TICK)
    return {
        path: {"mtime_ns": stat.st_mtime_ns, "ctime_ns": stat.st_ctime_ns, "inode": stat.st_ino}
        for path, stat in stats.items()
    }


def _stat(path: Path) -> os.stat_result:
    with path.open("rb") as handle:  # NFS gets them from the server when a file is opened
        return os.fstat(handle.fileno())


def after_rename(noted: File, path: Path) -> File:
    """Return the manifest's entry of a file after a rename or a link, which changes only its ctime."""
    return {**noted, "ctime_ns": path.lstat().st_ctime_ns}


def closed(noted: File) -> File:
    """Return the manifest's entry of a file in a folder that only root may write to: its ctime is not needed there.

    A backup, a link or another label changes it, and 65 GB would be hashed again.
    """
    return {**noted, "ctime_ns": None}


def unchanged(noted: File, path: Path) -> bool:
    """Return True if a file still is the verified one, by size, times and inode: hashing 65 GB takes minutes.

    A process that may write to a file can set any mtime, but never the ctime.
    """
    try:
        stat = path.lstat()
    except OSError:
        return False
    same = (stat.st_size, stat.st_mtime_ns, stat.st_ino) == (noted["size"], noted["mtime_ns"], noted["inode"])
    return same and noted["ctime_ns"] in (None, stat.st_ctime_ns)


def is_read_only(folder: Path) -> bool:
    """Return True if not even root may write to a folder: a read-only mount, or a server that refuses it."""
    return not os.access(folder, os.W_OK)


def is_closed(folder: Path) -> bool:
    """Return True if only root can have changed anything in a folder."""
    return all(map(roots_own, [folder, *folder.rglob("*")]))


def roots_own(path: Path) -> bool:
    """Return True if root, the user of this program, owns a file or folder, and no other user may write to it."""
    stat = path.lstat()
    return stat.st_uid == os.geteuid() and (path.is_symlink() or not stat.st_mode & 0o022)


def close(folder: Path) -> None:
    """Let all users read a folder or a file, the server's user in the container too, and only root write."""
    for path in [folder, *folder.rglob("*")]:
        # A server of a shared store may not let root change a file's owner.
        with suppress(PermissionError):
            if not path.is_symlink():
                _close(path)


def _close(path: Path) -> None:
    """Set owner and mode only where they differ: a call changes the ctime, by which other hosts identify a file."""
    stat = path.stat()
    if stat.st_uid != os.geteuid() and os.geteuid() == 0:
        os.chown(path, 0, 0)
    wanted = (stat.st_mode | (0o755 if path.is_dir() else 0o444)) & ~0o022
    if wanted != stat.st_mode:
        path.chmod(wanted)


def same_bytes(one: File, other: File) -> bool:
    """Return True if two entries of a file do not contradict each other, and share a hash."""
    hashes = [(one.get(key), other.get(key)) for key in ("sha256", "blob")]
    both = [(mine, theirs) for mine, theirs in hashes if mine and theirs]
    return one["size"] == other["size"] and bool(both) and all(mine == theirs for mine, theirs in both)


def is_plain(path: str) -> bool:
    """Return True if a name from the hub leads to a file below the model's folder, and is not Rackwright's."""
    parts = path.split("/")
    plain = all(part not in ("", ".", "..") for part in parts) and path.isprintable() and "\\" not in path
    return plain and not any(part.startswith((".rackwright", ".parts")) for part in parts)
