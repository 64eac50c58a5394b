"""Clients that may reach a port: `allow_from`, and the networks that `private` stands for."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Tag


def _network(value: str) -> str:
    try:
        if "%" in value:
            raise ValueError("a network has no zone")
        return str(ipaddress.ip_network(value, strict=False))
    except ValueError:
        raise ValueError("must be a network such as 10.0.0.0/8") from None


Cidr = Annotated[str, AfterValidator(_network)]


def _allowed(value: object) -> object:
    if value in ([], ()):
        raise ValueError(
            "an empty list would let no client in; write any to open the port to everybody, or leave it out"
        )
    if isinstance(value, str) and value not in ("private", "any"):
        raise ValueError("must be private, any, or a list of networks such as [10.0.0.0/8]")
    return value


# Two kinds of value would make two messages of one mistake.
_Word = Annotated[Literal["private", "any"], Tag("[word]")]
_Networks = Annotated[tuple[Cidr, ...], Tag("[networks]")]
_Either = Annotated[
    _Word | _Networks, Discriminator(lambda value: "[word]" if isinstance(value, str) else "[networks]")
]
AllowFrom = Annotated[_Either | None, BeforeValidator(_allowed)]
"""Clients that may reach a port; None: nothing was written."""
PRIVATE = (
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "169.254.0.0/16",
    "fc00::/7",
    "fe80::/10",
)
"""Networks without an address of the internet: RFC 1918, 6598 (carriers and VPNs), 3927 (link-local) and 4193."""


def allowed_networks(allow_from: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the networks that an `allow_from` lets in; empty: all."""
    if allow_from == "any":
        return ()
    return PRIVATE if allow_from in (None, "private") else tuple(allow_from)


def is_network(value: object) -> bool:
    """Return True for the text of a network."""
    try:
        _network(str(value))
    except ValueError:
        return False
    return isinstance(value, str)


def who(networks: Sequence[str]) -> str:
    """Return the networks that may reach a port, in words; none: everybody."""
    if tuple(networks) == PRIVATE:
        return "private networks"
    return ", ".join(networks) or "everybody"
