"""Gateways of an inventory, and what stands behind them: a backend for each model, with the hosts that serve it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from rackwright.settings.secret import Secret


@dataclass(frozen=True)
class GatewayHost:
    """A host of the inventory's group `gateway`."""

    host: str
    """Its name in the inventory."""
    resolve: Callable[[], str] = field(default=str, compare=False, repr=False)
    """Returns its address, which may ask the resolver."""
    closes_direct: bool = False
    """True if the endpoints' ports are to be closed to all but the gateways."""
    monitors: tuple[str, ...] = ()
    """Networks that still reach the endpoints' ports then."""
    is_self: bool = field(default=False, compare=False)
    """True in the settings of that host itself."""

    @cached_property
    def address(self) -> str:
        """The address by which it is reached, and from which it asks; empty when unknown."""
        return self.resolve()


@dataclass(frozen=True)
class Server:
    """An endpoint of a host, as a gateway reaches it."""

    host: str
    """Its host's name in the inventory."""
    endpoint: str
    port: int
    word_port: int
    """Port at which its host says whether it may get requests."""
    api_key: Secret | None = None
    """The engine's own key."""
    resolve: Callable[[], str] = field(default=str, compare=False, repr=False)
    """Returns its address, which may ask the resolver."""
    gateway: str = ""
    """The gateway's name in the inventory, by which it asks for the word."""
    repository: str = ""
    """Repository of the model."""

    @cached_property
    def address(self) -> str:
        """The address by which the gateway reaches it; empty when unknown."""
        return self.resolve()


@dataclass(frozen=True)
class Backend:
    """All servers of one model."""

    model: str
    """The name that /v1/models answers."""
    engine_kind: str
    servers: tuple[Server, ...]
