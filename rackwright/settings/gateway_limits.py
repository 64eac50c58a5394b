"""Bytes and connections that a gateway takes at most, and the memory that they may need. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rackwright.settings.backend import Backend
from rackwright.settings.gateway import Gateway

KIB, MIB, GIB = 1024, 1024**2, 1024**3
HEADERS = 64 * KIB
"""Bytes of a buffer for the header of a request; without body routing it is the whole buffer."""
UNSIZED = 48 * KIB
"""Bytes of a body without a length that such a buffer takes beside the header."""
CONNECTIONS = 8192
"""Connections at a time, each with one request or stream; of HTTP/2 one connection has several."""
LEAST_CONNECTIONS = 64
BODIES = 8 * GIB
"""Memory for bodies that are read for their model, at most; it bounds the connections."""


@dataclass(frozen=True)
class GatewayLimits:
    """Bytes and connections that a gateway takes at most."""

    connections: int
    buffer: int
    """Bytes of a buffer."""
    body: int
    """Bytes of a body with a length."""
    unsized: int
    """Bytes of a body without a length."""

    @property
    def memory(self) -> int:
        """Bytes of all buffers when every connection sends as much as one takes."""
        return self.connections * self.buffer


def by_body(gateway: Gateway, backends: Sequence[Backend]) -> bool:
    """Return True if bodies are read for the model that they name; one model alone needs no reading."""
    return "body" in gateway.route_by and len(backends) > 1


def gateway_limits(gateway: Gateway, backends: Sequence[Backend]) -> GatewayLimits:
    """Return what a gateway takes at most."""
    body = gateway.body_limit * MIB
    if not by_body(gateway, backends):
        return GatewayLimits(CONNECTIONS, HEADERS, body, UNSIZED)
    buffer = body + HEADERS
    return GatewayLimits(min(CONNECTIONS, max(LEAST_CONNECTIONS, BODIES // buffer)), buffer, body, body)
