"""A port of a host that leads back to a port of this machine, through the connection that the run has (`ssh -R`)."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from paramiko import SSHException

from rackwright.adapter.concurrency import spawn
from rackwright.adapter.host import Host
from rackwright.adapter.run_context import part_of
from rackwright.adapter.ssh.forward import pump
from rackwright.messages import RackwrightError

ADDRESS = "127.0.0.1"


class NoWayBackError(RackwrightError):
    """A host's sshd does not let its port lead to this machine."""

    code = "RW3813"


@dataclass(frozen=True)
class WaysBack:
    """Those of a run, by host: its port, the port here, and the connection that has it."""

    by_host: dict[str, tuple[int, int, Any]] = field(default_factory=dict)


def lead_back(host: Host, port: int, here: int) -> None:
    """Let a port of a host's 127.0.0.1 lead to one of this machine's, now and after it is connected to again.

    Raises RackwrightError where its sshd does not let it.
    """
    ways = part_of(host.state, WaysBack).by_host
    transport = _transport(host)
    if transport is None or (host.name in ways and ways[host.name][2] is transport):
        return
    try:
        transport.request_port_forward(ADDRESS, port, partial(_begin, here))
    except SSHException as error:
        text = (
            f"its sshd does not let port {port} lead to the bundle ({error}): AllowTcpForwarding is off, or another "
            f"run, one whose connection is dead, or a program has that port; next, on it: ss -ltnp 'sport = :{port}' "
            "and sshd -T | grep -i forwarding; or another bundle.port"
        )
        raise NoWayBackError(text) from error
    ways[host.name] = port, here, transport


def lead_back_again(host: Host) -> None:
    """Do the same for a new connection of a host that had such a port."""
    if way := part_of(host.state, WaysBack).by_host.get(host.name):
        lead_back(host, way[0], way[1])


def end_ways_back(state: Any) -> None:
    """Free the hosts' ports that lead to this machine: the next connection of this process may want them."""
    ways = part_of(state, WaysBack).by_host
    for port, _, transport in ways.values():
        with contextlib.suppress(SSHException, OSError, EOFError):
            transport.cancel_port_forward(ADDRESS, port)
    ways.clear()


def _transport(host: Host) -> Any:
    client: Any = getattr(host.connector, "client", None)
    return client.get_transport() if client is not None else None


def _begin(here: int, channel: Any, *_addresses: Any) -> None:
    spawn(partial(_carry, here, channel), "way back")


def _carry(here: int, channel: Any) -> None:
    with (
        contextlib.closing(channel),
        contextlib.suppress(OSError),
        socket.create_connection((ADDRESS, here)) as local,
    ):
        local.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = spawn(lambda: pump(channel, local))
        pump(local, channel)
        back.join()
