"""The options of the TCP line below SSH, with and without a jump host."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from paramiko import Channel

from rackwright.adapter.connection_limits import is_direct, tune


@pytest.fixture
def line() -> Iterator[socket.socket]:
    """A TCP connection of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as found:
        yield found


def host_by(sock: Any) -> Any:
    """A host whose SSH runs over this."""
    client = SimpleNamespace(get_transport=lambda: SimpleNamespace(sock=sock))
    return SimpleNamespace(connector=SimpleNamespace(client=client))


def jump(sock: Any) -> Channel:
    """What paramiko gives for a socket where a jump host makes the connection."""
    channel = Channel(1)
    channel.transport = SimpleNamespace(sock=sock)  # type: ignore[assignment]
    return channel


def quick(sock: socket.socket) -> bool:
    """Whether small packets are sent at once."""
    return bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))


def test_a_direct_line_is_tuned(line: socket.socket) -> None:
    assert not quick(line)
    tune(host_by(line))
    assert quick(line)
    assert is_direct(host_by(line))


def test_by_way_of_jump_hosts_the_line_to_the_first_is_tuned(line: socket.socket) -> None:
    by_two = host_by(jump(jump(line)))
    tune(by_two)
    assert quick(line)
    assert not is_direct(by_two)


def test_a_line_that_a_command_makes_is_left_alone() -> None:
    tune(host_by(object()))
    tune(SimpleNamespace(connector=SimpleNamespace(client=None)))  # type: ignore[arg-type]
