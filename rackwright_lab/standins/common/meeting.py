"""How the ranks of one engine over several nodes meet: the first one listens, the others call and stay on the line."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

WAITING = 600.0
"""Seconds for which a rank waits for the others."""
Place = tuple[str, int]


def gather(place: Place, nodes: int, options: dict[str, Any], lost: Callable[[int], None]) -> None:
    """Wait until every other rank is there with the same options.

    lost: called with its rank when one of them is gone later. Raises RuntimeError when one is not there.
    """
    waiting = socket.create_server(place, backlog=nodes)
    waiting.settimeout(WAITING)
    seen: set[int] = set()
    while len(seen) < nodes - 1:
        try:
            met, _ = waiting.accept()
        except TimeoutError:
            raise RuntimeError(f"Timed out after {WAITING:g} s waiting for {nodes - 1 - len(seen)} nodes.") from None
        seen.add(_welcome(met, options, lost))


def _welcome(met: socket.socket, options: dict[str, Any], lost: Callable[[int], None]) -> int:
    file = met.makefile("rw")
    theirs = json.loads(file.readline())
    if theirs["options"] != options:
        raise RuntimeError(f"The nodes disagree: {theirs['options']} and {options}.")
    file.write("joined\n")
    file.flush()
    rank = int(theirs["rank"])
    watch(met, lambda: lost(rank))
    return rank


def watch(line: socket.socket, gone: Callable[[], None]) -> None:
    """Call `gone` when the other end has closed its line."""
    threading.Thread(target=_watch, args=(line, gone), daemon=True).start()


def _watch(line: socket.socket, gone: Callable[[], None]) -> None:
    try:
        while line.recv(64):
            pass
    except OSError:
        pass
    gone()


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
