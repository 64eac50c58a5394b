"""The keys of the gateway's clients, as the site keeps them: a name and a SHA-256, never the key itself. Pure."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from datetime import UTC, date, datetime, time
from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator, Field

from rackwright.settings.sections import SHA256, Frozen

BEGINNING = "rk-"
"""What every key begins with, so that people and scanners of secrets know one when they see it."""
RANDOM_BYTES = 32
MOST = 1_000_000
"""Requests that a limit may say."""
CLIENT = r"^[a-z0-9]([a-z0-9._@-]{0,61}[a-z0-9])?$"
"""A client's name: a word of HAProxy's maps and of its log."""
ClientName = Annotated[str, Field(pattern=CLIENT)]
Limit = Annotated[int, Field(ge=0, le=MOST)]
MODEL = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$"
"""A model's name, as /v1/models answers it."""


def _in_utc(value: Any) -> Any:
    """Return a day, or a time without a zone, as a time in UTC: people write both."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time(), UTC)
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


Moment = Annotated[AwareDatetime, BeforeValidator(_in_utc)]


class GatewayKey(Frozen):
    """One key of a client."""

    name: ClientName
    """Name of the client, which the access log and `rackwright usage` show."""
    sha256: Annotated[str, Field(pattern=SHA256)]
    """SHA-256 of the whole key."""
    created: Moment
    expires: Moment | None = None
    """Time from which the key is refused; a key that was rotated has one."""
    models: Annotated[tuple[Annotated[str, Field(pattern=MODEL)], ...], Field(min_length=1)] | None = None
    """Models that the client may ask; default: all."""
    requests_per_minute: Limit | None = None
    """Limit of the client; 0 for none; default: the gateway's."""
    requests_in_flight: Limit | None = None
    """Limit of the client; 0 for none; default: the gateway's."""

    def counts(self, now: datetime) -> bool:
        """Return True while the key has not expired."""
        return self.expires is None or now < self.expires


def _listed(value: Any) -> Any:
    """Return an empty list for `keys:` without one: that is how a list looks whose last item was removed by hand."""
    return () if value is None else value


class GatewayKeys(Frozen):
    """All keys of a site's gateways."""

    keys: Annotated[tuple[GatewayKey, ...], BeforeValidator(_listed)] = ()

    def of(self, name: str) -> tuple[GatewayKey, ...]:
        """Return the keys of a client, the newest last."""
        return tuple(sorted((key for key in self.keys if key.name == name), key=_age))

    @property
    def clients(self) -> dict[str, GatewayKey]:
        """Each client's newest key, which says its limits and models."""
        return {key.name: self.of(key.name)[-1] for key in self.keys}

    def without(self, gone: Collection[str]) -> GatewayKeys:
        """Return the keys without those of these hashes."""
        return GatewayKeys(keys=tuple(key for key in self.keys if key.sha256 not in gone))

    def expired(self, now: datetime) -> tuple[str, ...]:
        """Return the hashes of the keys that have expired."""
        return tuple(key.sha256 for key in self.keys if not key.counts(now))


def _age(key: GatewayKey) -> tuple[bool, datetime]:
    return key.expires is None, key.created


def new_key() -> str:
    """Return a new key of 256 random bits."""
    return f"{BEGINNING}{secrets.token_urlsafe(RANDOM_BYTES)}"


def sha256_of(key: str) -> str:
    """Return what is stored of a key."""
    return hashlib.sha256(key.encode()).hexdigest()
