"""How the ranks of one engine over several nodes meet: the first one listens, the others call and stay on the line."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

WAITING = 600.0
"""Seconds for which a rank waits for the others."""
Place = tuple[str, int]


class Line:
    """The first rank's line to another one."""

    def __init__(self, rank: int, line: socket.socket, lost: Callable[[int], None]) -> None:
        self.rank = rank
        self._line = line
        self._lost = lost
        self._is_gone = False
        self._lock = threading.Lock()
        self._heard = threading.Semaphore(0)
        watch(line, self._gone, self._heard.release)

    def round(self) -> None:
        """Send something and wait until it has come back, as each token does; for ever when the line is cut."""
        with self._lock:
            if not self._is_gone:
                with suppress(OSError):
                    self._line.sendall(b".")
                self._heard.acquire()

    def _gone(self) -> None:
        self._is_gone = True
        self._lost(self.rank)
        self._heard.release()


def gather(place: Place, nodes: int, options: dict[str, Any], lost: Callable[[int], None]) -> list[Line]:
    """Wait until every other rank is there with the same options; returns the lines to them.

    lost: called with its rank when one of them is gone later. Raises RuntimeError when one is not there.
    """
    waiting = socket.create_server(place, backlog=nodes)
    waiting.settimeout(WAITING)
    found: dict[int, Line] = {}
    while len(found) < nodes - 1:
        try:
            met, _ = waiting.accept()
        except TimeoutError:
            raise RuntimeError(f"Timed out after {WAITING:g} s waiting for {nodes - 1 - len(found)} nodes.") from None
        line = _welcome(met, options, lost)
        found[line.rank] = line
    return list(found.values())


def _welcome(met: socket.socket, options: dict[str, Any], lost: Callable[[int], None]) -> Line:
    file = met.makefile("rw")
    theirs = json.loads(file.readline())
    if theirs["options"] != options:
        raise RuntimeError(f"The nodes disagree: {theirs['options']} and {options}.")
    file.write("joined\n")
    file.flush()
    return Line(int(theirs["rank"]), met, lost)


def watch(line: socket.socket, gone: Callable[[], None], heard: Callable[[], None] = lambda: None) -> None:
    """Call `gone` when the other end has closed its line, and `heard` for each byte until then."""
    threading.Thread(target=_watch, args=(line, gone, heard), daemon=True).start()


def _watch(line: socket.socket, gone: Callable[[], None], heard: Callable[[], None]) -> None:
    try:
        while line.recv(1):
            heard()
    except OSError:
        pass
    gone()


def answer_rounds(line: socket.socket) -> None:
    """Send back whatever the first rank sends, until it is gone."""
    try:
        while said := line.recv(64):
            line.sendall(said)
    except OSError:
        pass


def join(place: Place, rank: int, options: dict[str, Any]) -> socket.socket | None:
    """Call the first rank; returns the line to it, or None when it did not take this one. Raises RuntimeError."""
    line = _called(place)
    file = line.makefile("rw")
    file.write(json.dumps({"rank": rank, "options": options}) + "\n")
    file.flush()
    return line if file.readline() == "joined\n" else None


def _called(place: Place) -> socket.socket:
    end = time.monotonic() + WAITING
    while True:
        try:
            line = socket.create_connection(place, timeout=10)
        except OSError as error:
            if time.monotonic() > end:
                told = f"The client socket has timed out while trying to connect to {place}: {error}"
                raise RuntimeError(told) from error
            time.sleep(0.5)
        else:
            line.settimeout(None)
            return line
