"""Limits of a canary's slowness beside its peers, by an endpoint's settings. Plain values, without a connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rackwright.concerns.endpoint.container import served_name
from rackwright.concerns.endpoint.full_gate import drafting_of
from rackwright.concerns.endpoint.quality.quality_check import AskedRelease, minutes, serving_release
from rackwright.concerns.endpoint.release.files import Release
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.endpoint.switch.job import drain_time
from rackwright.plan.change import Job
from rackwright.settings.host_settings import EndpointSettings
from rackwright.settings.sections import WINDOWS
from rackwright_engines.metrics import scrape

PAIRS = WINDOWS - 1
"""Windows that count, and pairs of Rackwright's own requests where clients send too few."""
OWN_LIMIT = 25
"""Seconds for the answer to one of its own requests."""
MOST_PEERS = 8
"""Peers that are looked at, the first in inventory order: more of them say little more."""


@dataclass(frozen=True)
class PeerCheck:
    """A release that is to serve beside its peers before its commit, and how much slower it may be."""

    now: AskedRelease
    before: str | None
    """The last proven release here, which its peers serve still; None where none was proven: any other one counts."""
    slower_by: float
    """Per cent."""
    seconds: int
    """For all windows."""
    metrics: str
    """Path of the engine's metrics; empty where it shows none that may be read."""
    why_no_metrics: str
    drafting: str
    """Its way of drafting; empty when it does not draft."""
    leaving: int
    """Seconds within which its clients are let in, and taken away again."""

    @property
    def window(self) -> float:
        """Seconds of one window."""
        return self.seconds / WINDOWS

    @property
    def longest(self) -> int:
        """The most seconds that it may take, with requests of its own after windows without clients' requests."""
        return self.seconds + PAIRS * 4 * OWN_LIMIT + self.leaving

    def is_peer(self, of: AskedRelease | None) -> bool:
        """Return True for what serves the release before."""
        if of is None or not of.serves:
            return False
        return of.release == self.before if self.before else of.release != self.now.release


def peer_check(release: Release, settings: EndpointSettings, reading: SeenEndpoint) -> PeerCheck | None:
    """Return the check of a release; None where the settings ask for none.

    reading: of the endpoint in its place now.
    """
    gate, spec = settings.gate, release.spec
    if gate.level == "basic" or gate.slower_by is None:
        return None
    found = scrape(settings)
    keyed, kind = bool(spec.key_option), settings.engine_kind
    return PeerCheck(
        now=AskedRelease(spec.name, release.hash, spec.health_url, served_name(settings), keyed, kind),
        before=reading.proven if reading.proven != release.hash else None,
        slower_by=gate.slower_by,
        seconds=gate.beside_peers,
        metrics=found.path,
        why_no_metrics=found.why,
        drafting=drafting_of(settings),
        leaving=2 * settings.hook_timeout + drain_time(settings),
    )


def peer_release(settings: EndpointSettings | None, reading: SeenEndpoint | None) -> AskedRelease | None:
    """Return what an endpoint of another host serves now, by what it has proven; None without it."""
    if settings is None or reading is None or reading.proven is None:
        return None
    found = serving_release(settings, reading)
    return found if found and found.release == reading.proven else None


def longer_beside(job: Job, checks: Sequence[PeerCheck]) -> Job:
    """Return a switch's job with the time that it serves beside its peers before the commit."""
    return replace(job, timeout=job.timeout + sum(check.longest for check in checks))


def peer_note(name: str, settings: EndpointSettings, has_peers: bool) -> str:
    """Return what a plan says of an endpoint's time beside its peers; empty where the settings ask for none.

    has_peers: True where other hosts of the inventory serve its model.
    """
    gate = settings.gate
    if gate.slower_by is None:
        return ""
    if not has_peers:
        return f"endpoint {name}: no other host of this inventory serves it, so gate.slower_by compares nothing"
    when = "in a rollout " if gate.level == "basic" else ""
    return (
        f"endpoint {name}: {when}the first host of each shape serves clients on trial for about "
        f"{minutes(gate.beside_peers)} beside hosts of its shape that serve the release before, of which there must be "
        f"one; more than {gate.slower_by:g} % slower is refused (gate.slower_by)"
    )
