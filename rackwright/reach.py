"""Whether an endpoint's port can be reached from the control machine: the proof itself travels by SSH."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass

from rackwright.settings.sections import who

SECONDS = 3


@dataclass(frozen=True)
class Door:
    """Where clients come in: the published port, and the networks that may (empty: everybody)."""

    port: int
    networks: tuple[str, ...]


def knock(address: str, door: Door) -> str:
    """One sentence on whether the port answers here; never an error, since this machine may rightly be kept out."""
    try:
        with socket.create_connection((address, door.port), timeout=SECONDS):
            return f"port {door.port} is reachable from this machine"
    except OSError as error:
        return (
            f"warning: port {door.port} is not reachable from this machine ({_why(error)}); {_allowed(door.networks)}"
        )


def _why(error: OSError) -> str:
    return "no answer" if isinstance(error, TimeoutError) else (error.strerror or str(error))


def _allowed(networks: Sequence[str]) -> str:
    return f"it is open to {who(networks)}" if networks else "a firewall between may close it"
