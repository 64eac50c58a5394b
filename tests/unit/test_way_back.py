"""The port of a host that leads back to this machine: asked for once a connection, and again for a new one."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from paramiko import SSHException

from rackwright.adapter.ssh.way_back import NoWayBackError, end_ways_back, lead_back, lead_back_again


@dataclass
class Transport:
    """An SSH connection that notes what is asked of it."""

    denies: bool = False
    ports: list[tuple[str, int]] = field(default_factory=list)
    begin: Callable[..., None] = lambda *_: None

    def request_port_forward(self, address: str, port: int, begin: Callable[..., None]) -> int:
        if self.denies:
            raise SSHException("TCP forwarding request denied")
        self.ports.append((address, port))
        self.begin = begin
        return port

    def cancel_port_forward(self, address: str, port: int) -> None:
        self.ports.remove((address, port))


def host(transport: Transport, state: Any = None) -> Any:
    connector = SimpleNamespace(client=SimpleNamespace(get_transport=lambda: transport))
    return SimpleNamespace(name="h1", state=state or SimpleNamespace(), connector=connector)


def test_a_port_is_asked_for_once_a_connection() -> None:
    transport = Transport()
    one = host(transport)
    lead_back(one, 7460, 1)
    lead_back(one, 7460, 1)
    lead_back_again(one)
    assert transport.ports == [("127.0.0.1", 7460)]


def test_a_new_connection_gets_the_same_port_and_a_host_without_one_none() -> None:
    first, second = host(Transport()), Transport()
    lead_back_again(first)
    lead_back(first, 7460, 1)
    lead_back_again(host(second, first.state))
    assert second.ports == [("127.0.0.1", 7460)]


def test_a_host_that_was_looked_at_has_its_port_free_for_the_run_that_follows() -> None:
    transport = Transport()
    one = host(transport)
    lead_back(one, 7460, 1)
    end_ways_back(one.state)
    assert transport.ports == []
    lead_back(one, 7460, 1)
    assert transport.ports == [("127.0.0.1", 7460)]


def test_an_sshd_that_does_not_forward_is_a_refusal_with_what_to_do() -> None:
    with pytest.raises(NoWayBackError, match=r"RW3813.*7460.*AllowTcpForwarding"):
        lead_back(host(Transport(denies=True)), 7460, 1)


def test_what_comes_from_the_host_reaches_the_port_here_and_its_answer_the_host() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        transport = Transport()
        lead_back(host(transport), 7460, server.getsockname()[1])
        channel, far_end = socket.socketpair()
        transport.begin(channel, ("127.0.0.1", 1), ("127.0.0.1", 7460))
        far_end.sendall(b"question")
        local, _ = server.accept()
        with local, far_end:
            assert local.recv(100) == b"question"
            local.sendall(b"answer")
            assert far_end.recv(100) == b"answer"


def test_where_nothing_listens_here_the_hosts_connection_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    transport = Transport()
    lead_back(host(transport), 7460, port)
    channel, far_end = socket.socketpair()
    transport.begin(channel)
    with far_end:
        far_end.settimeout(10)
        assert far_end.recv(1) == b""
