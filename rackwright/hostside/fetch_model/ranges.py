"""The missing bytes of a file, appended as they come: one request with a range, by Python's own HTTP client."""

from __future__ import annotations

import http.client
import urllib.request
from collections.abc import Mapping
from typing import Any, BinaryIO

from rackwright.hostside.hand_on.redirects import TokenStays


def append_missing(url: str, headers: Mapping[str, str], handle: BinaryIO, size: int, block: int, wait: float) -> None:
    """Append what a file of `size` bytes lacks, from the handle's position on.

    block: bytes at a time, at most; what has come is written at once. wait: seconds without a byte. Raises OSError or
    HTTPException.
    """
    here = handle.tell()
    wanted = {"Range": f"bytes={here}-"} if here else {}
    request = urllib.request.Request(url, headers={**headers, **wanted})
    with urllib.request.build_opener(TokenStays).open(request, timeout=wait) as response:
        if response.status != 206:  # the server knows no ranges, and sends all of it
            here = handle.seek(0)
            handle.truncate()
        _copy(response, handle, size - here, block)


def _copy(response: Any, handle: BinaryIO, missing: int, block: int) -> None:
    while missing:
        data = _next(response, min(block, missing))
        if not data:
            raise http.client.IncompleteRead(b"", missing)
        handle.write(data)
        handle.flush()
        missing -= len(data)


def _next(response: Any, size: int) -> bytes:
    """Read the socket once: a slow connection shows progress, and a lost one loses nothing that has come."""
    try:
        data: bytes = response.read1(size)
    except ConnectionError as error:
        raise http.client.IncompleteRead(b"", size) from error
    return data
