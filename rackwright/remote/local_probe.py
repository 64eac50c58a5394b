"""Connections from this machine to an endpoint's port, and the address that they come from."""

from __future__ import annotations

import socket

from rackwright.plan.reach import NO_ANSWER, REFUSED, SECONDS


def probe(address: str, port: int) -> str:
    """Connect from this machine; return why that failed, or nothing."""
    try:
        with socket.create_connection((address, port), timeout=SECONDS):
            return ""
    except OSError as error:
        return _why_failed(error)


def _why_failed(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return NO_ANSWER
    return REFUSED if isinstance(error, ConnectionRefusedError) else (error.strerror or str(error)).lower()


def source_to(address: str) -> str:
    """Return the address by which this machine reaches another one, or nothing. Sends nothing."""
    try:
        family, kind, _, _, to = socket.getaddrinfo(address, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as one:
            one.connect(to)
            return str(one.getsockname()[0])
    except OSError:
        return ""
