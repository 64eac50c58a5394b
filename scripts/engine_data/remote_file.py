"""A file of a web server that is read by parts, as a zip archive's reader asks for them."""

from __future__ import annotations

import io
import re
import ssl
import urllib.request
from typing import Any

WHOLE = re.compile(r"bytes \d+-\d+/(\d+)")


class RemoteFile(io.RawIOBase):
    """A file by its address; each read is a request for that part. Read it through io.BufferedReader.

    remotezip would ask once for each member of an archive, and an engine has a thousand Python files.
    """

    def __init__(self, url: str, trust: ssl.SSLContext, seconds: float) -> None:
        """Ask for the size, which is 0 where the server sends no parts."""
        super().__init__()
        self._url, self._trust, self._seconds = url, trust, seconds
        self._at = 0
        with self._asked("bytes=0-0") as answer:
            found = WHOLE.fullmatch(answer.headers.get("Content-Range", ""))
            self.size = int(found[1]) if found and answer.status == 206 else 0

    def _asked(self, part: str) -> Any:
        request = urllib.request.Request(self._url, headers={"Range": part, "Accept-Encoding": "identity"})
        return urllib.request.urlopen(request, timeout=self._seconds, context=self._trust)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the place of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a place, and return it."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as the file goes."""
        end = min(self._at + len(buffer), self.size)
        if end <= self._at:
            return 0
        with self._asked(f"bytes={self._at}-{end - 1}") as answer:
            content = answer.read(end - self._at)
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)
