"""Check of the gateways' common address: exactly one of them has it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rackwright.concerns.gateway.answer import common_address
from rackwright.settings.host_settings import HostSettings

PROTOCOL = "IP protocol 112 must pass between them, both ways"


@dataclass(frozen=True)
class AddressOwners:
    """The gateways of an inventory that were read, and those of them that have the common address."""

    address: str
    owners: tuple[str, ...]
    read: tuple[str, ...]
    is_whole: bool
    """True if every gateway of the inventory was read."""

    @property
    def sentences(self) -> dict[str, str]:
        """By gateway, what is wrong with the address; empty when it has one owner, or that is not known."""
        if len(self.owners) > 1:
            both = " and ".join(self.owners)
            text = f"{both} both have {self.address}: they do not hear each other, and a client's requests go to either"
            return dict.fromkeys(self.owners, f"{text}; next: {PROTOCOL}; on both: journalctl -u rackwright-keepalived")
        if self.owners or not self.is_whole:
            return {}
        text = f"no gateway has {self.address}; next, on each: systemctl status 'rackwright-*'"
        return dict.fromkeys(self.read, text)


def address_owners(settings: Mapping[str, HostSettings], has: Mapping[str, bool]) -> AddressOwners | None:
    """Return who has the common address; None without one. has: by gateway that was read, True if it has it."""
    meant = [one for one in settings.values() if common_address(one)]
    if not meant:
        return None
    names = {gateway.host for gateway in meant[0].gateways}
    owners = tuple(host for host, owns in has.items() if owns)
    return AddressOwners(common_address(meant[0]), owners, tuple(has), names <= {*has})


def sentences_of(settings: Mapping[str, HostSettings], has: Iterable[tuple[str, bool]]) -> dict[str, str]:
    """Return, by gateway, what is wrong with the common address."""
    found = address_owners(settings, dict(has))
    return found.sentences if found else {}
