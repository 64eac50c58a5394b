"""Writes a .torrent (BEP 3) of one file. Pure but for the file that it reads."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

PIECE = 1 << 18


def bencode(value: Any) -> bytes:
    """Return bytes, whole numbers, lists and mappings as BitTorrent writes them."""
    if isinstance(value, bytes):
        return b"%d:%s" % (len(value), value)
    if isinstance(value, str):
        return bencode(value.encode())
    if isinstance(value, int):
        return b"i%de" % value
    if isinstance(value, list):
        return b"l%se" % b"".join(map(bencode, value))
    return b"d%se" % b"".join(bencode(key) + bencode(value[key]) for key in sorted(value))


def torrent_of(file: Path, announce: str, piece: int = PIECE) -> bytes:
    """Return the .torrent of a file whose tracker is at `announce`."""
    sums, size = [], 0
    with file.open("rb") as source:
        while data := source.read(piece):
            sums.append(hashlib.sha1(data).digest())
            size += len(data)
    info = {"length": size, "name": file.name, "piece length": piece, "pieces": b"".join(sums)}
    return bencode({"announce": announce, "info": info})
