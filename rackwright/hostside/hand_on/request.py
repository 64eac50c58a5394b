"""Requests as this program's own client writes them: whatever else is sent ends the connection."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

LONGEST = 8192
WITHIN = 10.0
"""Seconds for all of a request's head, however it trickles."""


@dataclass(frozen=True)
class PeerRequest:
    """A request's head; names of headers in lower case."""

    method: str
    target: str
    headers: dict[str, str]

    def words(self) -> list[str]:
        """Return what its signature is of."""
        message = [self.headers[name] for name in ("x-held", "x-passing", "x-whole") if name in self.headers]
        return [self.method, self.target, self.headers.get("range", ""), *message]


class Reader:
    """Reads the requests of one connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.rest = connection, b""

    def next(self, idle: float) -> PeerRequest | None:
        """Return the next request; None at the end. Raises ValueError, or OSError after so many idle seconds."""
        self.connection.settimeout(idle)
        limit = 0.0
        while b"\r\n\r\n" not in self.rest:
            if len(self.rest) > LONGEST or (limit and time.monotonic() > limit):
                raise ValueError("too long")
            got = self.connection.recv(LONGEST)
            if not got:
                return None
            self.rest += got
            limit = limit or time.monotonic() + WITHIN
            self.connection.settimeout(WITHIN)
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        return parse(head)


def parse(head: bytes) -> PeerRequest:
    """Return a request. Raises ValueError."""
    first, *rows = head.decode("ascii").split("\r\n")
    method, target, version = first.split(" ")
    if version != "HTTP/1.1" or method not in ("GET", "HEAD", "POST"):
        raise ValueError("not ours")
    headers: dict[str, str] = {}
    for row in rows:
        name, colon, value = row.partition(":")
        if not colon or name.lower() in headers:
            raise ValueError("a header")
        headers[name.lower()] = value.strip()
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise ValueError("a body")
    return PeerRequest(method, target, headers)


def offset(text: str, size: int, piece: int) -> int | None:
    """Return the first byte of a range that is open at its end and begins with a piece; None for others."""
    number = text[len("bytes=") : -1]
    if not (text.startswith("bytes=") and text.endswith("-") and number.isdigit() and len(number) < 20):
        return None
    return int(number) if int(number) < size and int(number) % piece == 0 else None
