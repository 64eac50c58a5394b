"""Endpoints of several hosts that mpirun starts, and its ports; other servers find each other."""

from __future__ import annotations

from rackwright.settings.group import rank_ports
from rackwright.settings.host_settings import EndpointSettings

MEETING = frozenset({"vllm", "sglang"})
"""Engines whose servers find each other by their own flags."""


def is_launched(endpoint: EndpointSettings) -> bool:
    """Return True when mpirun on the head starts what runs on the other members, by SSH."""
    return endpoint.size > 1 and endpoint.engine_kind not in MEETING


def launch_port(endpoint: EndpointSettings) -> int | None:
    """Return the port of the members' fabric addresses at which the head's mpirun comes in; None where nothing does."""
    return endpoint.group_port if is_launched(endpoint) else None


def launch_ports(endpoint: EndpointSettings) -> tuple[int, int] | None:
    """Return the first and last port of mpirun's daemons and ranks, on all addresses; None without mpirun."""
    return rank_ports(endpoint.group_port) if is_launched(endpoint) else None
