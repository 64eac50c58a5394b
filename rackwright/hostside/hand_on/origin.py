"""The hub or registry itself, by its files' URLs: for the host that fetches first."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections import deque
from functools import partial
from itertools import islice
from typing import Any
from urllib.parse import quote

from rackwright.hostside.hand_on import pieces
from rackwright.hostside.hand_on.failures import HandOnError, NoPiecesError
from rackwright.hostside.hand_on.holding import Holding
from rackwright.hostside.hand_on.pieces import PIECE
from rackwright.hostside.hand_on.rate_limit import RateLimit
from rackwright.hostside.hand_on.receive import BROKEN, receive, words
from rackwright.hostside.hand_on.redirects import TokenStays
from rackwright.hostside.hand_on.report import PullReport
from rackwright.hostside.hand_on.spec import File

AT_ONCE, SEGMENT = 4, 16 * PIECE
"""Connections at a time where the hub is fast, and the bytes that each fetches: all of them are kept in memory."""
FAST = 8 * PIECE
"""Bytes a second of one connection from which on a longer way, and not the link, may be what slows it."""
FATAL = {401: "refuses the token", 403: "refuses the token", 404: "has no such file"}


class HubFiles:
    """The source of files that no host has. Raises NoPiecesError where another try may help."""

    name = "the hub"
    fatal = FATAL

    def __init__(self, url: str, token: str | None, stall: float) -> None:
        self.url, self.token, self.stall = url, token, stall
        self.opener = urllib.request.build_opener(TokenStays)
        self.ranges = True

    def fill(self, holding: Holding, limit: RateLimit, report: PullReport) -> None:
        """Add the missing bytes of a file, piece by piece."""
        begun, start = holding.have, time.monotonic()
        with self._open(holding.file, holding.have) as response:
            self._skip(response, holding)
            while holding.have < holding.file.size:
                data = receive(response, pieces.length(holding.file.size, holding.have // PIECE), limit, self.stall)
                self._add(holding, data, report)
                if self.ranges and self._is_far(holding, holding.have - begun, time.monotonic() - start):
                    break
        if holding.have < holding.file.size:
            self._side_by_side(holding, limit, report)

    # -- several connections

    def _is_far(self, holding: Holding, size: int, seconds: float) -> bool:
        """Return True where more connections may give more: this one is fast, and much is missing."""
        return holding.file.size - holding.have > AT_ONCE * SEGMENT and size >= max(SEGMENT, FAST * seconds)

    def _side_by_side(self, holding: Holding, limit: RateLimit, report: PullReport) -> None:
        """Fetch the rest of a file by several connections; its pieces are added in order."""
        starts = iter(range(holding.have, holding.file.size, SEGMENT))
        coming = deque(_Segment(self, holding.file, start, limit) for start in islice(starts, AT_ONCE))
        while coming:
            segment = coming.popleft()
            for data in segment.result():
                self._add(holding, data, report)
            coming.extend(_Segment(self, holding.file, start, limit) for start in islice(starts, 1))

    def segment(self, file: File, start: int, limit: RateLimit) -> list[bytearray]:
        """Return the pieces of one segment of a file."""
        end = min(start + SEGMENT, file.size)
        with self._open(file, start, end) as response:
            if response.status != 206 or int(response.headers.get("Content-Length", 0)) != end - start:
                self.ranges = False
                raise NoPiecesError("it knows no ranges")
            sizes = [pieces.length(file.size, number) for number in range(start // PIECE, pieces.count(end))]
            return [receive(response, size, limit, self.stall) for size in sizes]

    # -- one request

    def _open(self, file: File, start: int, end: int | None = None) -> Any:
        """Ask for the bytes of a file; end: the byte after the last one."""
        wanted = f"bytes={start}-{'' if end is None else end - 1}"
        headers = {"Range": wanted, "Accept-Encoding": "identity", "User-Agent": "rackwright"}
        request = urllib.request.Request(self.url + quote(file.at or file.path, safe="/:"), headers=headers)
        try:
            return self._answer(request)
        except urllib.error.HTTPError as error:
            raise self._refused(error, file.path) from None
        except BROKEN as error:
            raise NoPiecesError(words(error)) from None

    def _answer(self, request: urllib.request.Request) -> Any:
        """Send a request with what it takes to be let in. Raises HTTPError where it is refused."""
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        return self.opener.open(request, timeout=self.stall)

    def _add(self, holding: Holding, data: bytearray, report: PullReport) -> None:
        holding.add(data, pieces.sha256(data), self.name)
        report.add(len(data), self.name)

    def _refused(self, error: urllib.error.HTTPError, path: str) -> Exception:
        if error.code in self.fatal:
            return HandOnError(f"{path}: {self.name} {self.fatal[error.code]} ({error.code})")
        after = error.headers.get("Retry-After", "") if error.headers else ""
        return NoPiecesError(f"it answers {error.code}", float(after) if after.isdigit() else 0)

    def _skip(self, response: Any, holding: Holding) -> None:
        """Skip what is here where the hub knows no ranges. Raises HandOnError where its file has another size."""
        missing = holding.file.size - holding.have
        size = int(response.headers.get("Content-Length", missing))
        if response.status == 200 and size == holding.file.size:
            for _ in range(holding.have // PIECE):
                receive(response, PIECE, RateLimit(None), self.stall)
        elif size != missing:
            raise HandOnError(f"{holding.file.path}: {self.name}'s file has another size than the lock says")


class _Segment(threading.Thread):
    """A segment that is on its way. As a daemon it keeps no program from ending."""

    def __init__(self, hub: HubFiles, file: File, start: int, limit: RateLimit) -> None:
        super().__init__(daemon=True)
        self.work = partial(hub.segment, file, start, limit)
        self.pieces: list[bytearray] = []
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.pieces = self.work()
        except (NoPiecesError, HandOnError, ValueError) as error:
            self.error = error

    def result(self) -> list[bytearray]:
        """Wait for it. Raises what it raised."""
        self.join()
        if self.error:
            raise self.error
        return self.pieces
