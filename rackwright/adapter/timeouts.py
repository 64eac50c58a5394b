"""The connection to a host: quick for small commands, and given up when the other end is gone, hangs or floods.

Every command has limits on this side: how long it may take, and how much it may print. A host past one of them is lost
to the run, so that it does not hold up the others.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import Any

from pyinfra.api.host import Host

SILENCE = 30
"""Seconds without any sign of life after which a host counts as lost."""
SLOW = 15
"""Seconds of a command after which its host's sshd is asked whether it lives."""
DEAD = 60
"""Seconds without its answer after which the host is lost: its kernel acknowledges for an sshd that is frozen."""
GRACE = 30
"""Seconds that a command may take longer than its own limit on the host, which normally ends it."""
LONGEST = 3600
"""Seconds of a command that states no limit: an operation of the site's own."""
MOST = 16 << 20
"""Bytes that one command may print, on both streams together."""
A_LINE = 64
"""Bytes that each line counts beside its own: a flood of empty lines fills the memory as well."""


class PastLimitError(OSError):
    """A command took too long or printed too much; its connection is closed."""

    code = ""

    @property
    def text(self) -> str:
        """The sentence for the user."""
        return str(self)


class SilentHostError(PastLimitError):
    """A command did not end within its limit."""

    code = "RW0751"

    def __init__(self, seconds: float, who: str = "a command was still running") -> None:
        super().__init__(
            f"{who} after {seconds:.0f} s, so the connection was closed; the host may hang; "
            "next: look at it by hand (ssh, its console), then run the same command again"
        )


class FrozenHostError(SilentHostError):
    """A host's sshd, or one on the way to it, has stopped answering."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds, "the host's sshd, or that of a jump host, has not answered")


class FloodError(PastLimitError):
    """A command printed more than is read."""

    code = "RW0761"

    def __init__(self, limit: int | None = None) -> None:
        super().__init__(
            f"a command printed more than {(limit or MOST) >> 20} MiB, so the connection was closed; next: look for "
            "what prints there (a start file of the login's shell, sudo, sh), then run the same command again"
        )


class Spent:
    """Counts what a command prints. Raises FloodError past the limit."""

    def __init__(self) -> None:
        self.bytes = 0

    def take(self, chunk: bytes) -> bytes:
        """Count a chunk, and return it."""
        self.bytes += len(chunk) + A_LINE * chunk.count(b"\n")
        if self.bytes > MOST:
            raise FloodError
        return chunk


def tune(host: Host) -> None:
    """Set the options of a host's connection that pyinfra and paramiko leave alone.

    Without TCP_NODELAY each command costs 41 ms more. Without the others, the command that runs while a host loses
    its power or its network waits for ever.
    """
    # One that is closed already raises at any attribute: the command that follows reports the lost connection.
    with suppress(OSError):
        sock = _socket(_transport(host))
        if sock is not None:
            for level, name, value in _options():
                sock.setsockopt(level, name, value)


def _socket(transport: Any) -> Any:
    """Return the socket to the host, or to the jump host before it; None where a command makes the connection."""
    sock: Any = getattr(transport, "sock", None)
    while hasattr(sock, "get_transport"):
        sock = sock.get_transport().sock
    return sock if hasattr(sock, "setsockopt") else None


def is_lost(host: Host) -> bool:
    """Return whether a host's SSH connection is gone: to pyinfra that is a command that failed and said nothing."""
    if getattr(host.connector, "client", None) is None:
        return False
    # paramiko ends the channels a moment before it marks the connection as ended.
    time.sleep(0.05)
    transport = _transport(host)
    return transport is None or not transport.is_active()


def is_unconnected(host: Host) -> bool:
    """Return True without a connection: it was closed, or another thread is reconnecting just now."""
    return getattr(host.connector, "client", None) is not None and _transport(host) is None


def is_direct(host: Host) -> bool:
    """Return whether this machine itself connects to a host: not by a jump host, nor by a command (ProxyCommand)."""
    transport = _transport(host)
    with suppress(OSError):  # of a closed one, at any attribute
        return transport is None or hasattr(transport.sock, "setsockopt")
    return True


def _transport(host: Host) -> Any:
    client = getattr(host.connector, "client", None)
    return client.get_transport() if client is not None else None


def _options() -> list[tuple[int, int, int]]:
    """Return level, option and value; those that this system has."""
    tcp: dict[str, Any] = {
        "TCP_NODELAY": 1,
        "TCP_KEEPIDLE": SILENCE // 3,
        "TCP_KEEPINTVL": SILENCE // 6,
        "TCP_KEEPCNT": 4,
        "TCP_USER_TIMEOUT": SILENCE * 1000,
    }
    supported = [
        (socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in tcp.items() if hasattr(socket, name)
    ]
    return [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *supported]
