"""The maps by which a gateway knows its clients' keys: whole files, rendered from the site's. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime

from rackwright.paths import ETC
from rackwright.settings.gateway import Gateway
from rackwright.settings.gateway_keys import GatewayKey, GatewayKeys

FOLDER = f"{ETC}/gateway"
MAPS = ("keys", "expiries", "limits", "inflight", "models")
"""Maps of clients, by their names: `NAME.map` in the folder."""
REVOKED = f"{FOLDER}/revoked"
"""Hashes of keys that were revoked on this gateway: no deploy from an older copy of the site brings one back."""


def map_file(name: str) -> str:
    """Return the path of a map."""
    return f"{FOLDER}/{name}.map"


def key_maps(gateway: Gateway, keys: GatewayKeys, now: datetime, revoked: Collection[str] = ()) -> dict[str, str]:
    """Return the content of each map, by its path.

    revoked: the hashes in the gateway's own list; `keys` may be from a copy of the site that is older than it.
    """
    counting = keys.without({*revoked, *keys.expired(now)})
    return {
        map_file("keys"): _text((key.sha256, key.name) for key in counting.keys),
        map_file("expiries"): _text(
            (key.sha256, str(int(key.expires.timestamp()))) for key in counting.keys if key.expires
        ),
        **{
            map_file(name): _text(row for key in counting.clients.values() for row in client_rows(gateway, key)[name])
            for name in ("limits", "inflight", "models")
        },
    }


Rows = tuple[tuple[str, str], ...]


def client_rows(gateway: Gateway, key: GatewayKey) -> dict[str, Rows]:
    """Return what the maps of limits and models say of a client: nothing where it has none.

    In `models`, a client that may not ask all has a row of its own, and one for each `CLIENT/MODEL` that it may.
    """
    minute = _limit(key.requests_per_minute, gateway.requests_per_minute)
    in_flight = _limit(key.requests_in_flight, gateway.requests_in_flight)
    return {
        "limits": ((key.name, str(minute)),) if minute else (),
        "inflight": ((key.name, str(in_flight)),) if in_flight else (),
        "models": tuple(_models(key)),
    }


def _models(key: GatewayKey) -> Iterator[tuple[str, str]]:
    if key.models is not None:
        yield key.name, "some"
        yield from ((f"{key.name}/{model}", "yes") for model in key.models)


def _limit(client: int | None, default: int) -> int:
    return default if client is None else client


def _text(rows: Iterator[tuple[str, str]]) -> str:
    return "".join(sorted(f"{key} {value}\n" for key, value in rows))
