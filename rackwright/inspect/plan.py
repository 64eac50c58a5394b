"""Changes on each host, from its settings and its reading alone. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rackwright.concerns.catalog import managed
from rackwright.concerns.deploy_steps import Declared, left_behind
from rackwright.concerns.drained import DRAINED
from rackwright.concerns.driver import DRIVER
from rackwright.concerns.driver import notes as driver_notes
from rackwright.concerns.endpoint.concern import ENDPOINT, adopted_later, deferred_releases
from rackwright.concerns.endpoint.peers.peer_check import peer_note
from rackwright.concerns.endpoint.quality.quality_check import quality_note
from rackwright.concerns.endpoint.release.concern import RELEASE, Unresolved, wanted_releases
from rackwright.concerns.endpoint.release.files import Release
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.endpoint.switch.steps import DaemonRestart, Proved
from rackwright.concerns.firewall import CLOSE_DIRECT, closing_changes
from rackwright.concerns.handed_images import handed_on
from rackwright.concerns.image import IMAGE
from rackwright.concerns.models import MODELS
from rackwright.concerns.models.neighbours import handed_on_by
from rackwright.concerns.options import OPTIONS, report
from rackwright.concerns.preflight.concern import fetch_of
from rackwright.messages import RackwrightError
from rackwright.paths import endpoint_of, unit_name
from rackwright.plan.change import Change, Owned, Refuse
from rackwright.plan.concern import Concern, HostReading
from rackwright.plan.ownership import RECORD
from rackwright.record.masked_changes import mask, secrets_of
from rackwright.settings.host_settings import HostSettings

State = Literal["pending", "converged", "refused", "unreadable", "unreachable"]
_UUID = re.compile(r"GPU-[0-9a-fA-F-]{36}")


@dataclass(frozen=True)
class PlannedChange:
    """One change as it is shown. Secrets in its texts are masks."""

    concern: str
    what: str
    why: str
    restarts: str = ""
    """Services that restart: `endpoint llm`, `dockerd`; empty when nothing does."""
    down: tuple[str, ...] = ()
    """Endpoints that serve until it stops them, and start again."""
    stops: tuple[str, ...] = ()
    """Endpoints that it stops for good."""
    download: int | None = 0
    """Bytes to fetch; None when it fetches something of unknown size."""
    estimated: bool = False
    """True when `download` is what such things usually weigh."""
    diff: str = ""
    alike: tuple[str, ...] = ()
    """The change, why and diff without the values that differ from host to host: equal ones are shown once."""
    comes: tuple[str, ...] = ()
    """Endpoints that take the place of those that it stops for good."""


@dataclass(frozen=True)
class HostPlan:
    """All that would happen to one host."""

    host: str
    state: State
    changes: tuple[PlannedChange, ...] = ()
    refusals: tuple[str, ...] = ()
    error: str = ""
    """The reason for which nothing is known of it."""
    notes: tuple[str, ...] = ()
    """Adoptions at the next switch, and what is left behind, as sentences: neither a change nor drift."""
    others: tuple[str, ...] = ()
    """Operations of the site's own, by name: a plan does not look at them."""
    together: tuple[str, ...] = ()
    """The hosts that serve its endpoint together, itself among them; empty for a host that serves alone."""


def plan_host(name: str, settings: HostSettings, reading: HostReading, declared: Declared) -> HostPlan:
    """Pending changes of the concerns that deploy.py calls, and what refuses them.

    A host whose settings fit nowhere is unreadable.
    """
    try:
        pending = [
            (concern.name, change)
            for concern in managed(declared.steps)
            for change in _pending(concern, settings, reading)
        ]
        if CLOSE_DIRECT in declared:
            pending += [(CLOSE_DIRECT, change) for change in closing_changes(settings, reading)]
        wanted = ENDPOINT.wanted(settings, reading) if ENDPOINT.name in declared else None
        later = deferred_releases(wanted, reading[ENDPOINT]) if wanted else {}
        described = _Describer(settings, reading, later)
        refusals = [
            step.message for _, change in pending for step in change.steps if isinstance(step, Refuse) and step.final
        ]
        changes = tuple(described(concern, change) for concern, change in pending if not _refused(change))
        refusals += absent(reading)
        questions = _questions_asked(settings, pending)
    except RackwrightError as error:
        return HostPlan(name, "unreadable", error=str(error))
    state: State = "refused" if refusals else "pending" if changes else "converged"
    mark = reading[DRAINED].drained
    notes = (
        [f"{mark}; its endpoints are left as they are; next: rackwright undrain INVENTORY --limit {name}"]
        if mark
        else []
    )
    notes += list(adopted_later(wanted, reading[ENDPOINT])) if wanted else []
    notes += questions
    notes += driver_notes(DRIVER.wanted(settings, reading), reading[DRIVER]) if DRIVER.name in declared else []
    notes += _of_images(settings, reading) if OPTIONS.name in declared else []
    record: frozenset[Owned] = reading[RECORD]
    notes += left_behind(declared, record)
    masked = tuple(mask(text, described.secrets) for text in dict.fromkeys(refusals))
    together = settings.group.hosts if settings.group else ()
    return HostPlan(name, state, changes, masked, notes=tuple(notes), others=declared.others, together=together)


def _pending(concern: Concern[Any, Any], settings: HostSettings, reading: HostReading) -> list[Change]:
    """Return a concern's changes, with the hosts from which images are taken."""
    changes = concern.pending(settings, reading)
    return handed_on(changes, settings, reading) if concern is IMAGE else changes


def _questions_asked(settings: HostSettings, pending: Iterable[tuple[str, Change]]) -> list[str]:
    """Return what is asked of the canaries among such hosts, of endpoints that switch."""
    proved = {step.endpoint for _, change in pending for step in change.steps if isinstance(step, Proved)}
    endpoints = {name: one for name, one in settings.all_endpoints.items() if name in proved}
    notes = (
        note
        for name, endpoint in endpoints.items()
        for note in (quality_note(name, endpoint, settings.site), peer_note(name, endpoint, name in settings.peers))
    )
    return [text for text in notes if text]


def _of_images(settings: HostSettings, reading: HostReading) -> list[str]:
    """Return what no image was asked about a release that is to start, as a deploy says it."""
    return report(OPTIONS.wanted(settings, reading), reading[OPTIONS]).splitlines()


def absent(reading: HostReading) -> list[str]:
    """Return what registry and hub do not have, or do not show: a deploy would fail when it fetches it."""
    messages = [text for concern in (IMAGE, MODELS) for text in reading.names_of(concern).absent.values()]
    return list(dict.fromkeys(messages))


def _refused(change: Change) -> bool:
    return any(isinstance(step, Refuse) and step.final for step in change.steps)


class _Describer:
    """Describes the changes of one host. later: endpoints whose wanted release is deferred."""

    def __init__(self, settings: HostSettings, reading: HostReading, later: Collection[str]) -> None:
        self.later = later
        self.secrets = tuple(secrets_of(settings))
        self.observed: Mapping[str, SeenEndpoint] = reading[ENDPOINT].endpoints
        self.wanted = wanted_releases(settings, reading)
        self.hashes = _hashes(reading, self.wanted)
        self.givers = _givers(reading)

    def __call__(self, concern: str, change: Change) -> PlannedChange:
        size, estimated = _download(concern, change)
        texts = [mask(text, self.secrets) for text in (change.what, change.why, self._diff(concern, change))]
        alike = tuple(_without_own_words(_named(text, self.givers, GIVER), self.hashes) for text in texts)
        what, why, diff = texts
        restarts = self._restarts(change)
        down, stops = self._down(change), self._stops(change)
        return PlannedChange(concern, what, why, restarts, down, stops, size, estimated, diff, alike, _comes(change))

    def _down(self, change: Change) -> tuple[str, ...]:
        named = [step.endpoints for step in change.steps if isinstance(step, DaemonRestart)]
        named += [(step.endpoint,) for step in change.steps if isinstance(step, Proved) and step.restarts]
        named += [(change.endpoint,)] if change.restarts == f"endpoint {change.endpoint}" else []
        return tuple(name for names in named for name in names if self._runs(name))

    def _stops(self, change: Change) -> tuple[str, ...]:
        gone = {owned.name for owned in change.disowns}
        return tuple(name for name in self.observed if unit_name(name) in gone and self._runs(name))

    def _runs(self, name: str) -> bool:
        return self.observed.get(name, SeenEndpoint()).running_hash is not None

    def _restarts(self, change: Change) -> str:
        for step in change.steps:
            if isinstance(step, DaemonRestart):
                return f"dockerd and endpoint{'s' * (len(step.endpoints) > 1)} {', '.join(step.endpoints)}"
            if isinstance(step, Proved) and step.restarts:
                return f"endpoint {step.endpoint}" if self._runs(step.endpoint) else ""
        return change.restarts

    def _diff(self, concern: str, change: Change) -> str:
        shown = concern == ENDPOINT.name or (concern == RELEASE.name and change.endpoint in self.later)
        return "\n".join([change.diff, self._endpoint_diff(change.endpoint) if shown else ""]).strip("\n")

    def _endpoint_diff(self, name: str) -> str:
        release = self.wanted.get(name)
        if release is None or isinstance(release, Unresolved):
            return ""
        return endpoint_diff(release, self.observed.get(name, SeenEndpoint()), self.hashes)


def _comes(change: Change) -> tuple[str, ...]:
    """Return the endpoints of a replacement."""
    if not any(isinstance(step, Proved) and step.takes_over for step in change.steps):
        return ()
    return tuple(name for owned in change.owns if (name := endpoint_of(owned.name)))


def _download(concern: str, change: Change) -> tuple[int | None, bool]:
    """Return the bytes that it fetches, None when unknown; and whether that is only approximate."""
    fetch = fetch_of(concern, change)
    return (change.size, False) if fetch is None else (fetch.size or None, not fetch.exact)


def endpoint_diff(release: Release, observed: SeenEndpoint, hashes: Iterable[str] = ()) -> str:
    """Engine YAML and unit: what the host has now against what is wanted. A first unit is not shown."""
    files: Mapping[str, str] = observed.spec.get("files", {})
    spec = release.spec
    on_host = files.get(spec.engine_file) or next(iter(files.values()), "")
    found = unified(spec.engine_file, on_host, spec.engine_yaml)
    if observed.unit is not None:
        known_hashes = {*hashes, release.hash, *filter(None, (observed.current, observed.running_hash))}
        before, after = (_named(text, known_hashes, "RELEASE") for text in (observed.unit, release.unit))
        found += unified(unit_name(spec.name), before, after)
    return "\n".join(found)


def unified(name: str, before: str, after: str) -> list[str]:
    """Lines of a unified diff; none when nothing differs."""
    return list(difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, lineterm="", n=2))


def _hashes(reading: HostReading, wanted: Mapping[str, Release | Unresolved]) -> frozenset[str]:
    """Names of all releases that this host has or gets."""
    endpoints = reading[ENDPOINT].endpoints.values()
    found = {
        hash_ for endpoint in endpoints for hash_ in (endpoint.current, endpoint.proven, endpoint.running_hash) if hash_
    }
    found |= {hash_ for sums in reading[RELEASE].sums.values() for hash_ in sums}
    return frozenset(found | {release.hash for release in wanted.values() if isinstance(release, Release)})


GIVER = handed_on_by("…")


def _givers(reading: HostReading) -> list[str]:
    """Return what a plan says of the hosts that a host takes models and images from: each host has another one."""
    parts = reading.hands_on.parts.values() if reading.hands_on else ()
    return [handed_on_by(part.sources[0].host) for part in parts if part.sources]


def _named(text: str, hashes: Iterable[str], replacement: str) -> str:
    for hash_ in hashes:
        text = text.replace(hash_, replacement)
    return text


def _without_own_words(text: str, hashes: Iterable[str]) -> str:
    return _UUID.sub("GPU-…", _named(text, hashes, "…"))
