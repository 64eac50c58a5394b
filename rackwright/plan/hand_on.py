"""The order in which hosts take a model from each other: one chain of the hosts of a run, in inventory order. Pure.

Each host hands on what it has while it receives, so that a chain of any length takes the time of one host and a little
for each link (docs/how-it-works). A host may take from several before it: one that is slow or gone is passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rackwright.settings.secret import Secret

BEFORE = 16
"""Hosts before it in the chain that a host may take from, the nearest first."""
LAST = 4
"""Hosts at the chain's end that any host before them may take from."""
KEEPERS = 2
"""Hosts that have a model already and hand it on, at most: the nearest to the chain's first host."""
QUARTER = 4
UNKNOWN_LINK = 1000
"""Mbit/s of a link that does not say its speed."""


@dataclass(frozen=True)
class Sharer:
    """A host of a run that fetches a model, or has it."""

    host: str
    address: str
    port: int
    has: bool
    """True if it has verified all of it."""
    asks_hub: bool = False
    """True if it may ask the hub where no host hands on to it."""
    serves: bool = False
    """True if an endpoint of it serves now."""
    link: int | None = None
    """Speed of its interface in Mbit/s; None where that is unknown."""
    outside: bool = False
    """True if the run was not begun for it: it only hands on what the run's hosts lack."""
    busy: bool = False
    """True if it hands the same on to another run now: it begins with this one afterwards."""

    @property
    def lacks(self) -> bool:
        """True if it fetches the model."""
        return not self.has

    @property
    def peer(self) -> Neighbour:
        """Return the address by which others reach it."""
        return Neighbour(self.host, self.address, self.port)

    @property
    def serve_mib(self) -> float | None:
        """MiB/s that it may hand on: a quarter of its link while it serves, else all."""
        return round((self.link or UNKNOWN_LINK) * 1e6 / 8 / (1 << 20) / QUARTER, 1) if self.serves else None


@dataclass(frozen=True)
class Neighbour:
    """Another host, as one reaches it."""

    host: str
    address: str
    port: int


@dataclass(frozen=True)
class ChainPart:
    """The part of one host in the chain of a model."""

    listener: Neighbour
    """The address at which it listens."""
    sources: tuple[Neighbour, ...]
    """Hosts that it takes from, in the order in which they are tried."""
    takers: tuple[Neighbour, ...]
    """Hosts that may take from it."""
    from_hub: bool
    """True if it may ask the hub."""
    serve_mib: float | None = None
    """MiB/s that it may hand on; None: all that its link takes."""
    index: int = 0
    """Hosts before it in the chain that lack the model, too."""
    waits: bool = False
    """True if all that have it hand it on to another run first."""

    @property
    def keeps(self) -> bool:
        """True if it has the model already, and only hands it on."""
        return not self.sources and not self.from_hub


@dataclass(frozen=True)
class HandsOn:
    """The part of one host in handing on and taking, and the run's secrets."""

    parts: Mapping[str, ChainPart]
    """Its part by the model, as `concerns/models/neighbours` names one."""
    secrets: Mapping[str, Secret] = field(repr=False)
    """`run_token`, by which the hosts of the run know each other; `tls.pem` where they encrypt."""


def handovers(sharers: Sequence[Sharer], seed: str | None = None) -> Mapping[str, ChainPart]:
    """Return the part of each host by its name; hosts that have the model are missing unless they hand it on.

    sharers: in the inventory's order. seed: the host that asks the hub where none has the model, or only hosts outside
    the run have it, and none of them gives a byte; default: the first.
    """
    lacking = _seed_first([one for one in sharers if one.lacks], seed)
    if not lacking:
        return {}
    chain = [*reversed(_nearest(sharers, lacking[0])), *lacking]
    keepers = len(chain) - len(lacking)
    at_hub = keepers if all(one.outside for one in chain[:keepers]) else 0
    waits = keepers > 0 and all(one.busy for one in chain[:keepers])
    sources = [_sources(chain, index, keepers) for index in range(len(chain))]
    return {
        one.host: ChainPart(
            one.peer,
            tuple(chain[source].peer for source in sources[index]),
            tuple(chain[taker].peer for taker in _takers(sources, index)),
            one.lacks and (one.asks_hub or index == at_hub),
            one.serve_mib,
            max(0, index - keepers),
            one.lacks and waits,
        )
        for index, one in enumerate(chain)
    }


def _sources(chain: Sequence[Sharer], index: int, keepers: int) -> list[int]:
    """Return whom a host takes from: those before it, the nearest first; then the chain's last ones.

    A slow host is passed by those behind it, whom it then takes from. The first one asks the hub, or has the model.
    """
    if index == 0 or index < keepers:
        return []
    first = [*range(min(keepers, index))] if index > BEFORE else []
    before = [*range(index - 1, max(-1, index - 1 - BEFORE), -1), *reversed(first)]
    behind = list(range(len(chain) - 1, index, -1))[:LAST]
    return [*dict.fromkeys([*before, *behind])]


def _takers(sources: Sequence[Sequence[int]], index: int) -> list[int]:
    """Return those who take from a host: those behind it, the next one first, then those before it."""
    found = [taker for taker, those in enumerate(sources) if index in those]
    return sorted(found, key=lambda taker: (taker < index, taker))


def _seed_first(lacking: Sequence[Sharer], seed: str | None) -> list[Sharer]:
    return sorted(lacking, key=lambda one: one.host != seed)


def _nearest(sharers: Sequence[Sharer], first: Sharer) -> list[Sharer]:
    """Return the hosts that have the model and hand it on: idle ones first, then the nearest in the inventory.

    One that hands it on to another run comes last: it serves one run at a time.
    """
    index = {one.host: number for number, one in enumerate(sharers)}
    having = [one for one in sharers if one.has]
    return sorted(having, key=lambda one: (one.busy, one.serves, abs(index[one.host] - index[first.host])))[:KEEPERS]
