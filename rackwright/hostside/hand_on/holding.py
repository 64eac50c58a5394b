"""One file of this host: its verified pieces, their sums, and whether all of it is the published file."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rackwright.hostside.hand_on import pieces
from rackwright.hostside.hand_on.pieces import PIECE
from rackwright.hostside.hand_on.spec import File
from rackwright.hostside.quiet_disk import forget

FLUSHED, KEPT = 16 * PIECE, 64 * PIECE
"""Bytes after which they are written to the disk; and those that stay in the page cache, for the next host."""


class PieceRun(NamedTuple):
    """Pieces of a file, as they are at a moment. handle: a file descriptor of its own, which the receiver closes."""

    handle: int
    start: int
    end: int
    sums: list[str]


class Holding:
    """A file that arrives, or is here. `have` bytes of its start are here; `whole`: it is the published one.

    careful: its bytes were wrong before, so only hosts that have all of it are asked. absent: it will not come here.
    """

    def __init__(self, file: File, folder: Path) -> None:
        self.file, self.target = file, folder / file.path
        self.part = folder / ".parts" / f"{hashlib.sha256(file.path.encode()).hexdigest()[:24]}.part"
        self.changed = threading.Condition()
        self.sums: list[str] = []
        self.have, self.whole, self.careful, self.absent = 0, False, False, False
        self.givers: set[str] = set()
        self.handle = -1
        self.sum = file.new_sum()

    # -- hand on

    def wait_beyond(self, offset: int, whole: bool, seconds: float) -> bool:
        """Wait until there is a byte at `offset`; whole: and all of the file. Return whether there is."""
        with self.changed:
            return self.changed.wait_for(lambda: self.have > offset and (self.whole or not whole), seconds)

    def pieces(self, offset: int, at_most: int) -> PieceRun | None:
        """Return the pieces that are here, from `offset` on."""
        with self.changed:
            end = min(self.have, offset + at_most * PIECE)
            if offset >= end or self.handle < 0:
                return None
            sums = self.sums[offset // PIECE : pieces.count(end)]
            return PieceRun(os.dup(self.handle), offset, end, sums)

    # -- receive

    def missing(self) -> int:
        """Return the bytes that are not on the disk, verified or not."""
        sizes = [path.stat().st_size for path in (self.target, self.part) if path.is_file()]
        return max(0, self.file.size - max(sizes, default=0))

    def resume(self, still_working: Callable[[int], None]) -> None:
        """Take up what is here: the file at its path, or a part that an earlier run left."""
        source = self.target if self._fits(self.target) else self.part
        self._open(source, os.O_RDWR | os.O_CREAT)
        if os.fstat(self.handle).st_size:
            self.givers.add("this host's own disk, from an earlier run")
        self._read(still_working)
        os.ftruncate(self.handle, self.have)
        if source == self.target:
            self.close_whole_or_discard()

    def read_only(self, still_working: Callable[[int], None]) -> None:
        """Read the file at its path, and nothing else. It is not whole where it is not the published one."""
        if not self._fits(self.target):
            self.absent = True
            return
        self._open(self.target, os.O_RDONLY)
        self._read(still_working)
        self.whole = self._is_right()
        self.absent = not self.whole
        if self.absent:
            self._close()
        with self.changed:
            self.changed.notify_all()

    def add(self, data: bytes | bytearray, digest: str, giver: str) -> None:
        """Write the next piece, whose sum was compared, and offer it to the next host."""
        start, remaining = self.have, memoryview(data)
        while remaining:
            remaining = remaining[os.pwrite(self.handle, remaining, start + len(data) - len(remaining)) :]
        self.sum.update(data)
        self.givers.add(giver)
        with self.changed:
            self.sums.append(digest)
            self.have = start + len(data)
            self.changed.notify_all()
        if start % FLUSHED == 0:
            self._flush(start)

    def close_whole_or_discard(self) -> bool:
        """Move the file to its path if it is the published one; throw file and list away otherwise."""
        if not self._is_right():
            self._discard()
            return False
        os.fdatasync(self.handle)
        os.fchmod(self.handle, 0o644)
        self.target.parent.mkdir(parents=True, exist_ok=True)
        if self.part.exists() and os.path.samestat(self.part.stat(), os.fstat(self.handle)):
            self.part.replace(self.target)
        forget(self.handle, 0, 0)
        with self.changed:
            self.whole = True
            self.changed.notify_all()
        return True

    # -- the bytes

    def _fits(self, path: Path) -> bool:
        return path.is_file() and not path.is_symlink() and path.stat().st_size == self.file.size

    def _open(self, path: Path, flags: int) -> None:
        self._close()
        self.handle = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def _close(self) -> None:
        with self.changed:
            if self.handle >= 0:
                os.close(self.handle)
            self.handle, self.have, self.sums, self.sum = -1, 0, [], self.file.new_sum()

    def _read(self, still_working: Callable[[int], None]) -> None:
        """Sum up the pieces that are on the disk; each is offered at once, as one that arrives."""
        while self.have < self.file.size:
            wanted = pieces.length(self.file.size, self.have // PIECE)
            data = os.pread(self.handle, wanted, self.have)
            if len(data) < wanted:
                return
            self.sum.update(data)
            forget(self.handle, self.have, len(data))
            with self.changed:
                self.sums.append(pieces.sha256(data))
                self.have += len(data)
                self.changed.notify_all()
            still_working(len(data))

    def _is_right(self) -> bool:
        return self.have == self.file.size and self.sum.hexdigest() == self.file.digest

    def _discard(self) -> None:
        path = self.target if self._is_open(self.target) else self.part
        with suppress(FileNotFoundError):
            path.unlink()
        self._open(self.part, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self.careful = True
        self.givers.clear()

    def _is_open(self, path: Path) -> bool:
        return path.is_file() and os.path.samestat(path.stat(), os.fstat(self.handle))

    def _flush(self, start: int) -> None:
        """Write to the disk, and drop from the cache what the next host has had the time to take."""
        os.fdatasync(self.handle)
        if start > KEPT:
            forget(self.handle, 0, start - KEPT)
