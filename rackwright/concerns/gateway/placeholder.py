# ruff: noqa: ARG001
"""Stand-ins for what has not landed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rackwright.settings.backend import Backend
from rackwright.settings.gateway import Gateway


def config(
    gateway: Gateway, backends: Sequence[Backend], *, site: Path, version: tuple[int, int], revision: str = ""
) -> str:
    """Return the text of haproxy.cfg."""
    return f"""# Written by Rackwright.
global
    stats socket /run/rackwright-gateway/admin.sock mode 600 level admin
    user haproxy
    group haproxy
    server-state-file /var/lib/rackwright/gateway/servers
defaults
    mode http
    timeout client 30s
    timeout server 30s
    timeout connect 5s
frontend gateway
    bind [::]:{gateway.port} v4v6{" ssl crt /etc/rackwright/gateway/certificates/gateway.pem" if gateway.tls else ""}
    acl known src -f /etc/rackwright/gateway/keys.map
    http-request return status 200 content-type text/plain string ok hdr X-Gateway-Revision '{revision}'
"""


def backend_name(model: str) -> str:
    """Return the name of a backend."""
    return f"model:{model}"


@dataclass(frozen=True)
class GatewayKeys:
    """No keys."""


def load_keys(path: Path) -> GatewayKeys:
    """Return no keys."""
    return GatewayKeys()


MAPS = ("keys", "expiries", "limits", "inflight", "models")
REVOKED = "/etc/rackwright/gateway/revoked"


def key_maps(gateway: Gateway, keys: GatewayKeys, now: datetime, revoked: Collection[str] = ()) -> dict[str, str]:
    """Return empty maps."""
    return {f"/etc/rackwright/gateway/{name}.map": "" for name in MAPS}
