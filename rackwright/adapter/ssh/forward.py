"""A port of this machine that leads to a port of a host through the connection that the run has, as `ssh -L` does."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

from paramiko import ChannelException, SSHException

from rackwright.adapter.concurrency import spawn
from rackwright.adapter.host import Host

SIZE = 65536
"""Bytes that are passed on at once."""
SECONDS = 30
"""Time limit of opening a channel."""


class NoForwardError(OSError):
    """The host opens no channel to the port; the text says why."""


def forwarded(host: Host, address: str, port: int) -> int:
    """Return a port of 127.0.0.1 that leads to an address and port as the host reaches them, until this process ends.

    Raises NoForwardError where sshd allows none, or nothing listens.
    """
    with contextlib.closing(_channel(host, address, port, ("127.0.0.1", 0))):
        listener = socket.create_server(("127.0.0.1", 0))
    spawn(lambda: _accept(listener, host, address, port), f"forward to {host.name}")
    return int(listener.getsockname()[1])


def _channel(host: Host, address: str, port: int, source: tuple[str, int]) -> Any:
    client: Any = getattr(host.connector, "client", None)
    transport = client.get_transport() if client is not None else None
    if transport is None:
        raise NoForwardError("the connection is gone")
    try:
        return transport.open_channel("direct-tcpip", (address, port), source, timeout=SECONDS)
    except ChannelException as error:
        raise NoForwardError(f"its sshd opens no channel to port {port} of {address}: {error.text}") from error
    except SSHException as error:
        raise NoForwardError(str(error)) from error


def _accept(listener: socket.socket, host: Host, address: str, port: int) -> None:
    while True:
        client, source = listener.accept()
        spawn(lambda client=client, source=source: _carry(client, host, address, port, source))  # type: ignore[misc]


def _carry(client: socket.socket, host: Host, address: str, port: int, source: tuple[str, int]) -> None:
    """Carry one connection; where no channel opens, the client's connection ends at once."""
    with contextlib.closing(client):
        try:
            channel = _channel(host, address, port, source)
        except OSError:
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.closing(channel):
            back = spawn(lambda: pump(channel, client))
            pump(client, channel)
            back.join()


def pump(source: Any, target: Any) -> None:
    """Pass on all that comes from one end, and then its end."""
    with contextlib.suppress(OSError, EOFError):
        while data := source.recv(SIZE):
            target.sendall(data)
    with contextlib.suppress(OSError, EOFError):
        target.shutdown(socket.SHUT_WR)
