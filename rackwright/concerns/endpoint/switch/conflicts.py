"""Endpoints of a host that must switch together: those that take the GPUs or the port of others. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rackwright.concerns.endpoint.seen import SeenEndpoint


@dataclass(frozen=True)
class Room:
    """Resources that an endpoint needs exclusively on a host."""

    gpus: frozenset[str]
    """UUIDs"""
    port: int

    def is_in_the_way_of(self, other: Room) -> bool:
        """Return True if both cannot serve at the same time."""
        return self.port == other.port or bool(self.gpus & other.gpus)


@dataclass(frozen=True)
class Exchange:
    """Endpoints, by name, that come, and those that leave for them."""

    coming: tuple[str, ...]
    leaving: tuple[str, ...]


def room_of(reading: SeenEndpoint) -> Room | None:
    """Return the resources that an endpoint holds while it serves; None when it does not."""
    if not reading.serving or reading.binding is None or "port" not in reading.spec:
        return None
    return Room(frozenset(reading.binding.gpus), int(reading.spec["port"]))


def groups_of(coming: Mapping[str, Room], held: Mapping[str, Room], wanted: Iterable[str]) -> list[Exchange]:
    """Return the groups in which at least two endpoints conflict, in the order of `coming`.

    coming: what each endpoint that is to be started will hold. held: what endpoints hold that serve now, whether they
    are wanted or not. wanted: names that the settings have; only those that they lack leave.
    """
    stays = set(wanted)
    ties = [
        {new, old}
        for new, room in coming.items()
        for old, has in held.items()
        if old != new and has.is_in_the_way_of(room) and (old in coming or old not in stays)
    ]
    return [_group(one, coming, stays) for one in _joined(ties)]


def _joined(ties: Iterable[set[str]]) -> list[set[str]]:
    """Merge sets that share a member."""
    found: list[set[str]] = []
    for tie in ties:
        touching = [one for one in found if one & tie]
        found = [group for group in found if not group & tie] + [tie.union(*touching)]
    return found


def _group(names: set[str], coming: Mapping[str, Room], stays: set[str]) -> Exchange:
    return Exchange(tuple(name for name in coming if name in names), tuple(sorted(names - stays)))
