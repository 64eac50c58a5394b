"""The options of the TCP connection below SSH, with and without a jump host."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from gevent import socket as cooperative
from paramiko import Channel

from rackwright.adapter.timeouts import is_direct, tune


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    """Yield a TCP connection of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as found:
        yield found


def host_by(sock: Any) -> Any:
    """Return a host whose SSH runs over this socket."""
    client = SimpleNamespace(get_transport=lambda: SimpleNamespace(sock=sock))
    return SimpleNamespace(connector=SimpleNamespace(client=client))


def jump(sock: Any) -> Channel:
    """Return what paramiko gives for a socket where a jump host makes the connection."""
    channel = Channel(1)
    channel.transport = SimpleNamespace(sock=sock)  # type: ignore[assignment]
    return channel


def quick(sock: socket.socket) -> bool:
    """Whether small packets are sent at once."""
    return bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))


def test_a_direct_line_is_tuned(connection: socket.socket) -> None:
    assert not quick(connection)
    tune(host_by(connection))
    assert quick(connection)
    assert is_direct(host_by(connection))


def test_by_way_of_jump_hosts_the_line_to_the_first_is_tuned(connection: socket.socket) -> None:
    by_two = host_by(jump(jump(connection)))
    tune(by_two)
    assert quick(connection)
    assert not is_direct(by_two)


def test_a_line_that_a_command_makes_is_left_alone() -> None:
    tune(host_by(object()))
    tune(SimpleNamespace(connector=SimpleNamespace(client=None)))  # type: ignore[arg-type]


def test_a_connection_that_is_closed_already_is_left_to_the_next_command() -> None:
    closed = cooperative.socket()
    closed.close()
    tune(host_by(closed))
    assert is_direct(host_by(closed))
