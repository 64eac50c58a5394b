"""Unpack hosts' data within a limit: a few kilobytes can hold gigabytes. Pure."""

from __future__ import annotations

import base64
import zlib

from rackwright.messages import ReadingError

GZIP = 16 + zlib.MAX_WBITS
"""zlib's value for gzip's header."""


def inflate(packed: str, most: int) -> bytes:
    """Return the bytes of gzip data in base64. Raises ReadingError when they are broken, cut, or more than `most`."""
    stream = zlib.decompressobj(GZIP)
    try:
        content = stream.decompress(base64.b64decode(packed, validate=True), most + 1)
    except (ValueError, zlib.error) as error:
        raise ReadingError(f"what the host has packed did not arrive whole: {error}", code="RW2002") from error
    if len(content) > most:
        raise ReadingError(f"what the host has packed is more than {most} bytes", code="RW2002")
    if not stream.eof:
        raise ReadingError("what the host has packed did not arrive whole: it was cut", code="RW2002")
    return content
