"""What a version of HAProxy cannot do of what the settings ask. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rackwright.settings.backend import Backend
from rackwright.settings.gateway import Gateway
from rackwright.settings.gateway_limits import by_body

BODY_ROUTING = (2, 5)
"""The first version that reads a value of a JSON body (`json_query`); Ubuntu 22.04 has 2.4."""
LACKS = "RW2015"


def lacks(gateway: Gateway, backends: Sequence[Backend], version: tuple[int, int]) -> str:
    """Return what this version of HAProxy cannot do, and the next step; empty if it can do all."""
    if version >= BODY_ROUTING or not by_body(gateway, backends):
        return ""
    return (
        f"gateway.route_by has `body`, and HAProxy {version[0]}.{version[1]} of this host cannot read bodies: it came "
        "with 2.5; next: take `body` out, clients name the model by path, header or host, or use a newer system"
    )
