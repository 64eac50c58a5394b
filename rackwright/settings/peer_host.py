"""A host of the inventory that serves the same model, and the port at which it says whether it may be used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class PeerHost:
    """One of the hosts that serve the same model."""

    host: str
    """Its name in the inventory."""
    port: int
    """Port of its word."""
    follows: bool = False
    """True if it serves together with a head, and does not answer requests itself."""
    resolve: Callable[[], str] = field(default=str, compare=False, repr=False)
    """Returns its address, which may ask the resolver: only a host that is deployed needs the addresses of others."""

    @cached_property
    def address(self) -> str:
        """The address by which the other hosts reach it; empty when unknown."""
        return self.resolve()
