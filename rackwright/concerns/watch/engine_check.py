"""The look at each endpoint between two deploys: what the host looks at, and the check that does it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rackwright.concerns.drained import MARK
from rackwright.concerns.endpoint.container import served_name
from rackwright.concerns.watch.units import BESIDE, WATCHED, check_file
from rackwright.hostside import DOCKER_ENVIRONMENT, host_script, host_text
from rackwright.paths import ENGINE_STATES, ENGINES_PAUSED, EVENTS_SENT, STATE
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright.settings.peer_host import PeerHost
from rackwright_engines.watch import signs

LOOK = check_file("engines")
FULL_AFTER = 600
"""Seconds for which a full batch may stand still without a byte, and an engine without a counter be silent."""
FRESH = 600
"""Seconds after ready in which nothing counts as hung."""


def engine_check_files(settings: HostSettings, addresses: Collection[str] = ()) -> dict[str, str]:
    """Return its files by path; none where the settings turn it off. Only the head of a group of hosts looks.

    addresses: the host's own.
    """
    if settings.watch.act == "off" or settings.follows:
        return {}
    files = {
        f"{WATCHED}/{name}": watched_text(settings, endpoint, HostsOfModel.of(settings, name, addresses))
        for name, endpoint in settings.all_endpoints.items()
    }
    return {LOOK: engine_check_script(), **files} if files else {}


@dataclass(frozen=True)
class HostsOfModel:
    """The hosts that answer for the same model, as one of them sees them."""

    others: tuple[PeerHost, ...] = ()
    """In the inventory's order, without this host."""
    size: int = 1
    index: int = 0
    """Number of the others before this host."""

    @classmethod
    def of(cls, settings: HostSettings, endpoint: str, addresses: Collection[str]) -> HostsOfModel:
        """Return the fleet of an endpoint. A host whose address is not its own counts as the last one of it."""
        peers = [peer for peer in settings.peers.get(endpoint, ()) if not peer.follows]
        if not peers:
            return cls()
        index = next((number for number, peer in enumerate(peers) if peer.address in addresses), None)
        if index is None:
            return cls(tuple(peers), len(peers), len(peers))
        return cls(_without(peers, index), len(peers), index)

    @property
    def text(self) -> str:
        """`NAME=ADDRESS:PORT` of the word of each other host whose address is known."""
        return " ".join(f"{peer.host}={_bracketed(peer.address)}:{peer.port}" for peer in self.others if peer.address)


def _without(peers: Sequence[PeerHost], index: int) -> tuple[PeerHost, ...]:
    return (*peers[:index], *peers[index + 1 :])


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _spared(max_unavailable: str, size: int) -> int:
    """Return how many of so many hosts may be down at the same time; always one."""
    share = max_unavailable.removesuffix("%")
    return max(1, int(share) if share == max_unavailable else size * int(share) // 100)


def watched_text(settings: HostSettings, endpoint: EndpointSettings, fleet: HostsOfModel) -> str:
    """Return what the look and the restart know of an endpoint, KEY=VALUE lines without secrets."""
    rows = (*_engine_rows(settings, endpoint), *_fleet_rows(settings, fleet))
    return "".join(f"{key}={value}\n" for key, value in rows)


def _fleet_rows(settings: HostSettings, fleet: HostsOfModel) -> Iterator[tuple[str, str | int]]:
    yield "hosts", fleet.size
    yield "index", fleet.index
    yield "max_unavailable", _spared(settings.rollout.max_unavailable, fleet.size)
    yield "peers", fleet.text
    yield "word_port", settings.word.port
    yield "lone", "yes" if fleet.size == 1 else "no"


def _engine_rows(settings: HostSettings, endpoint: EndpointSettings) -> Iterator[tuple[str, str | int]]:
    found = signs(endpoint)
    yield "engine", endpoint.engine_kind
    yield "steps", " ".join(found.steps)
    yield "moves", " ".join(found.moves)
    yield "sleep", found.sleep
    yield "awake", found.awake
    yield "compilers", " ".join(found.compilers)
    yield "metrics", found.path
    yield "health", "/health"
    yield "model", served_name(endpoint)
    yield "after", settings.watch.after or found.after
    yield "full_after", max(FULL_AFTER, settings.watch.after or 0)
    yield "load", endpoint.load_timeout
    yield "fresh", FRESH
    yield "batch", found.batch
    yield "act", settings.watch.act


def engine_check_script() -> str:
    """Return the check."""
    parts = [
        f"# Written by Rackwright: looks at the engine of each endpoint of {WATCHED}.\n{BESIDE}\nexport LC_ALL=C\n",
        DOCKER_ENVIRONMENT,
        host_text("holders.sh"),
        host_script("listener", listener_home=""),
        host_text("tell.sh"),
        host_text("open_requests.sh"),
        host_script(
            "look",
            watched=WATCHED,
            states=ENGINE_STATES,
            homes=f"{STATE}/endpoints",
            paused=ENGINES_PAUSED,
            drained=MARK,
            state_root=STATE,
            sent=EVENTS_SENT,
        ),
    ]
    return "".join(parts)
