# ruff: noqa: ARG001
"""Stand-ins for what has not landed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rackwright.settings.gateway import Gateway


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
