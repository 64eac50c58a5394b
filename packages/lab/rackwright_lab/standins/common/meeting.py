"""How the ranks of one engine over several nodes meet: the first one listens, the others connect and stay connected."""

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
Address = tuple[str, int]


class Peer:
    """The first rank's connection to another one."""

    def __init__(self, rank: int, connection: socket.socket, lost: Callable[[int], None]) -> None:
        self.rank = rank
        self._connection = connection
        self._lost = lost
        self._is_gone = False
        self._lock = threading.Lock()
        self._heard = threading.Semaphore(0)
        watch(connection, self._gone, self._heard.release)

    def round(self) -> None:
        """Send something and wait until it has come back, as each token does; for ever when the connection is cut."""
        with self._lock:
            if not self._is_gone:
                with suppress(OSError):
                    self._connection.sendall(b".")
                self._heard.acquire()

    def _gone(self) -> None:
        self._is_gone = True
        self._lost(self.rank)
        self._heard.release()


def gather(address: Address, nodes: int, options: dict[str, Any], lost: Callable[[int], None]) -> list[Peer]:
    """Wait until every other rank is there with the same options; returns the connections to them.

    lost: called with its rank when one of them is gone later. Raises RuntimeError when one is not there.
    """
    listener = socket.create_server(address, backlog=nodes)
    listener.settimeout(WAITING)
    peers: dict[int, Peer] = {}
    while len(peers) < nodes - 1:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            raise RuntimeError(f"Timed out after {WAITING:g} s waiting for {nodes - 1 - len(peers)} nodes.") from None
        peer = _admit(connection, options, lost)
        peers[peer.rank] = peer
    return list(peers.values())


def _admit(connection: socket.socket, options: dict[str, Any], lost: Callable[[int], None]) -> Peer:
    file = connection.makefile("rw")
    theirs = json.loads(file.readline())
    if theirs["options"] != options:
        raise RuntimeError(f"The nodes disagree: {theirs['options']} and {options}.")
    file.write("joined\n")
    file.flush()
    return Peer(int(theirs["rank"]), connection, lost)


def watch(connection: socket.socket, gone: Callable[[], None], heard: Callable[[], None] = lambda: None) -> None:
    """Call `gone` when the other end has closed the connection, and `heard` for each byte until then."""
    threading.Thread(target=_watch, args=(connection, gone, heard), daemon=True).start()


def _watch(connection: socket.socket, gone: Callable[[], None], heard: Callable[[], None]) -> None:
    try:
        while connection.recv(1):
            heard()
    except OSError:
        pass
    gone()


def answer_rounds(connection: socket.socket) -> None:
    """Send back whatever the first rank sends, until it is gone."""
    try:
        while data := connection.recv(64):
            connection.sendall(data)
    except OSError:
        pass


def join(address: Address, rank: int, options: dict[str, Any]) -> socket.socket | None:
    """Connect to the first rank; returns the connection, or None when it did not take this one. Raises RuntimeError."""
    connection = _connected(address)
    file = connection.makefile("rw")
    file.write(json.dumps({"rank": rank, "options": options}) + "\n")
    file.flush()
    return connection if file.readline() == "joined\n" else None


def _connected(address: Address) -> socket.socket:
    end = time.monotonic() + WAITING
    while True:
        try:
            connection = socket.create_connection(address, timeout=10)
        except OSError as error:
            if time.monotonic() > end:
                message = f"The client socket has timed out while trying to connect to {address}: {error}"
                raise RuntimeError(message) from error
            time.sleep(0.5)
        else:
            connection.settimeout(None)
            return connection
