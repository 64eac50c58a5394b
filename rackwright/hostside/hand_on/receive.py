"""Read a piece from an answer: paced, and with one time limit for all of it."""

from __future__ import annotations

import http.client
import time
from typing import Any

from rackwright.hostside.hand_on.failures import NoPiecesError
from rackwright.hostside.hand_on.rate_limit import RateLimit

BROKEN = (OSError, http.client.HTTPException)


def receive(response: Any, size: int, limit: RateLimit, stall: float) -> bytearray:
    """Return so many bytes. Raises NoPiecesError: also where they take longer than the limit, however they trickle."""
    data = bytearray(size)
    view, here = memoryview(data), 0
    deadline = time.monotonic() + max(stall, 4 * size / limit.rate if limit.rate else 0)
    while here < size:
        if time.monotonic() > deadline:
            raise NoPiecesError(f"it takes longer than {stall:g} s for a piece")
        try:
            got = response.readinto(view[here : here + limit.block])
        except BROKEN as error:
            raise NoPiecesError(words(error)) from None
        if not got:
            raise NoPiecesError("it closed the connection within a piece")
        limit.spend(got)
        here += got
    return data


def words(error: BaseException) -> str:
    """Return an error of the network as text."""
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, TimeoutError):
        return "it does not answer in time"
    if isinstance(reason, ConnectionRefusedError):
        return "nothing listens there yet"
    return str(reason) or type(error).__name__
