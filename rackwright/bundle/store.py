"""The bytes of a bundle: files named by their SHA-256, in parts that fit a disk, none larger than FAT32 takes."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from rackwright.bundle.catalog import Catalog, Stored, StoredPiece, part_name
from rackwright.messages import writing

PIECE = (4 << 30) - 1
"""Bytes of one file at most: what FAT32 holds."""
CHUNK = 4 << 20
INCOMING = "incoming"
"""Folder of what has not all come yet."""


class Store:
    """A bundle's folder while it is written. What an earlier command put there counts once it is hashed."""

    def __init__(self, folder: Path, part_size: int) -> None:
        self.folder, self.part_size = folder, part_size
        self.most = min(PIECE, part_size)
        self.stored: dict[str, Stored] = {}
        self._used: Counter[int] = Counter()
        self._earlier: dict[str, Stored] = {}
        with writing(folder):
            (folder / INCOMING).mkdir(parents=True, exist_ok=True)

    def take_up(self, catalog: Catalog) -> None:
        """Count on what an earlier command has stored."""
        self._earlier = dict(catalog.stored)
        for path, piece in catalog.pieces().items():
            if (self.folder / path).is_file():
                self._used[piece.part] += piece.size

    def has(self, sha256: str) -> bool:
        """Return True if these bytes are stored and right; they are hashed once a command."""
        if sha256 in self.stored:
            return True
        earlier = self._earlier.get(sha256)
        if earlier is None or not is_right(self.folder, sha256, earlier):
            return False
        self.stored[sha256] = earlier
        return True

    def incoming(self, name: str) -> Path:
        """Return the path for bytes that are on their way, the same each time."""
        return self.folder / INCOMING / hashlib.sha256(name.encode()).hexdigest()[:24]

    def cutting(self, sizes: Iterable[int]) -> int:
        """Return the room that cutting takes beside the files themselves. sizes: of all files; most need no cut."""
        return max((min(self.most, size - self.most) for size in sizes if size > self.most), default=0)

    def add(self, path: Path, sha256: str) -> None:
        """Move a whole, verified file in."""
        size = path.stat().st_size
        with writing(self.folder):
            pieces = self._split(path, size) if size > self.most else [self._place(path, sha256, size)]
        self.stored[sha256] = Stored(size=size, pieces=pieces)

    def add_bytes(self, content: bytes) -> str:
        """Store some bytes; returns their SHA-256."""
        sha256 = hashlib.sha256(content).hexdigest()
        if not self.has(sha256):
            path = self.incoming(sha256)
            with writing(path):
                path.write_bytes(content)
            self.add(path, sha256)
        return sha256

    def _split(self, path: Path, size: int) -> list[StoredPiece]:
        """Cut a file into pieces, from its end, so that no more than one piece is on the disk twice."""
        pieces: list[StoredPiece] = []
        for start in reversed(range(self.most, size, self.most)):
            cut = path.with_suffix(".piece")
            digest = hashlib.sha256()
            with path.open("rb") as source, cut.open("wb") as target:
                source.seek(start)
                while chunk := source.read(CHUNK):
                    digest.update(chunk)
                    target.write(chunk)
            pieces.insert(0, self._place(cut, digest.hexdigest(), size - start))
            os.truncate(path, start)
            size = start
        return [self._place(path, hash_file(path), size), *pieces]

    def _place(self, path: Path, sha256: str, size: int) -> StoredPiece:
        part = next(number for number in range(1, 10_000) if self._fits(number, size))
        piece = StoredPiece(sha256=sha256, size=size, part=part)
        target = self.folder / piece.path
        target.parent.mkdir(exist_ok=True)
        with path.open("rb+") as handle:
            os.fsync(handle.fileno())
        path.replace(target)
        target.chmod(0o644)
        self._used[part] += size
        return piece

    def _fits(self, part: int, size: int) -> bool:
        return self._used[part] + size <= self.part_size or not self._used[part]

    def drop_others(self) -> int:
        """Remove what no name of the bundle needs; returns how many files."""
        needed = {piece.path for one in self.stored.values() for piece in one.pieces}
        found = [path for folder in self.folder.glob("part-*") for path in folder.iterdir() if path.is_file()]
        others = [path for path in found if str(path.relative_to(self.folder)) not in needed]
        for path in [*others, *(self.folder / INCOMING).iterdir()]:
            path.unlink()
        (self.folder / INCOMING).rmdir()
        return len(others)


def is_right(folder: Path, sha256: str, stored: Stored) -> bool:
    """Return True if all pieces are there, and their bytes are the right ones."""
    digest = hashlib.sha256()
    for piece in stored.pieces:
        path = folder / piece.path
        if path.is_symlink() or not path.is_file() or path.stat().st_size != piece.size:
            return False
        with path.open("rb") as handle:
            while chunk := handle.read(CHUNK):
                digest.update(chunk)
    return digest.hexdigest() == sha256


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def sums_of(folder: Path, paths: Iterable[str]) -> str:
    """Return SHA256SUMS as `sha256sum --check` reads it: of a piece its name says it, of others their bytes."""
    rows = [(path.rpartition("/")[2] if path.startswith("part-") else hash_file(folder / path), path) for path in paths]
    return "".join(f"{sha256}  {path}\n" for sha256, path in sorted(rows, key=lambda row: row[1]))


__all__ = ["INCOMING", "PIECE", "Store", "hash_file", "is_right", "part_name", "sums_of"]
