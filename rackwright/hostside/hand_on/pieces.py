"""Pieces of a file and their list: what is signed by the run's token, and compared."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

PIECE = 1 << 20
SHORTEST_TOKEN = 32


class Keys:
    """The keys of a run, one for each purpose, all derived from its token."""

    def __init__(self, token: str) -> None:
        if len(token) < SHORTEST_TOKEN:
            raise ValueError(f"the run's token has fewer than {SHORTEST_TOKEN} characters")
        self.asking, self.listing = (_mac(token.encode(), purpose) for purpose in (b"ask", b"list"))

    def sign_request(self, nonce: str, number: int, words: Sequence[str]) -> str:
        """Return the signature of a connection's request: no other connection and no other place accepts it."""
        return _mac(self.asking, "\n".join([nonce, str(number), *words]).encode()).hex()

    def sign_list(self, sha256: str, start: int, sums: Sequence[str]) -> str:
        """Return the signature of the sums of a file's pieces from `start` on; its SHA-256 stands for the file."""
        return _mac(self.listing, "\n".join([sha256, str(start), *sums]).encode()).hex()


def same(one: str, other: str) -> bool:
    """Compare two signatures in a time that tells nothing about them."""
    return hmac.compare_digest(one.encode(), other.encode())


def length(size: int, number: int) -> int:
    """Return the bytes of a file's piece."""
    return max(0, min(PIECE, size - number * PIECE))


def count(size: int) -> int:
    """Return the number of a file's pieces."""
    return -(-size // PIECE)


def sha256(data: bytes | bytearray) -> str:
    """Return the sum of a piece."""
    return hashlib.sha256(data).hexdigest()


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).digest()
