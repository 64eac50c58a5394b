"""The sentence on whether a port answers here."""

from __future__ import annotations

import socket

from rackwright.reach import Door, knock


def test_an_open_port_is_reachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert knock("127.0.0.1", Door(port, ())) == f"port {port} is reachable from this machine"


def test_a_closed_port_is_a_warning_that_names_who_may_come_in() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    told = knock("127.0.0.1", Door(port, ("10.0.0.0/8",)))
    assert told.startswith(f"warning: port {port} is not reachable from this machine (Connection refused); ")
    assert told.endswith("it is open to 10.0.0.0/8")
