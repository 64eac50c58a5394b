"""The one change by which endpoints that are in each other's way switch: what comes replaces what leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rackwright.concerns.endpoint.peers.peer_check import PeerCheck, longer_beside, peer_check
from rackwright.concerns.endpoint.proof.proof_row import Question
from rackwright.concerns.endpoint.quality.quality_check import QualityCheck, longer, quality_check
from rackwright.concerns.endpoint.questions import (
    questions,
    questions_after,
    questions_before,
    questions_to_canary,
    tried_of,
)
from rackwright.concerns.endpoint.release.concern import Unresolved
from rackwright.concerns.endpoint.release.files import Release
from rackwright.concerns.endpoint.seen import SeenEndpoint, SeenEndpoints
from rackwright.concerns.endpoint.switch.conflicts import Exchange, Room, groups_of, room_of
from rackwright.concerns.endpoint.switch.proving import Tried
from rackwright.concerns.endpoint.switch.steps import Proved
from rackwright.concerns.endpoint.switch.transaction import Part, endpoints_switch, switch_job
from rackwright.concerns.endpoint.wanted import WantedEndpoint, WantedEndpoints
from rackwright.concerns.endpoint.why_switch import why_switch
from rackwright.paths import unit_name
from rackwright.plan.change import Change, Owned
from rackwright.plan.reach import client_port_of
from rackwright.settings.host_settings import EndpointSettings


def groups_among(wanted: WantedEndpoints, reading: SeenEndpoints) -> list[Exchange]:
    """Return the endpoints of a host that must switch together."""
    coming = {
        name: Room(frozenset(endpoint.binding.gpus), endpoint.settings.port)
        for name, endpoint in wanted.endpoints.items()
        if _is_due(endpoint, reading.endpoints.get(name, SeenEndpoint()))
    }
    held = {name: room for name, now in reading.endpoints.items() if (room := room_of(now))}
    return groups_of(coming, held, wanted.endpoints)


def _is_due(endpoint: WantedEndpoint, reading: SeenEndpoint) -> bool:
    """Return True if it is to be stopped and started, as far as is known."""
    if isinstance(endpoint.release, Unresolved):
        return True
    due = why_switch(endpoint.aim(endpoint.release), reading)
    return due is not None and due.restart


def replacement(group: Exchange, wanted: WantedEndpoints, reading: SeenEndpoints) -> Change:
    """Return the change of a group whose releases are all known."""
    first = wanted.endpoints[group.coming[0]]
    on_host = reading.endpoints
    coming = [coming_part(name, wanted.endpoints[name], on_host.get(name, SeenEndpoint())) for name in group.coming]
    leaving = [leaving_part(name, first.settings, on_host[name]) for name in group.leaving]
    releases = [(part.name, part.new.release) for part in coming if part.new]
    checks, rows = _checks(group, wanted, reading), _questions(group, wanted, questions_to_canary)
    peers = _peers(group, wanted, reading)
    job = switch_job(endpoints_switch([*coming, *leaving], first.keep_releases))
    step = Proved(
        endpoint=group.coming[0],
        release=releases[0][1],
        job=longer_beside(longer(job, checks, rows), peers),
        serving=True,
        questions=_questions(group, wanted, questions_after),
        questions_before=_before(group, first.settings, reading),
        client_port=client_port_of(first.settings, first.only),
        takes_over=group.leaving,
        quality=checks,
        canary_questions=rows,
        peers=peers,
    )
    return Change(
        _sentence(releases, group.leaving),
        _why(group),
        (step,),
        owns=tuple(Owned("unit", unit_name(name)) for name in group.coming),
        disowns=tuple(Owned("unit", unit_name(name)) for name in group.leaving),
        endpoint=group.coming[0],
    )


def coming_part(name: str, endpoint: WantedEndpoint, reading: SeenEndpoint) -> Part:
    """Return the part of one that must switch with others; only what serves now comes back beside them."""
    assert isinstance(endpoint.release, Release)
    old = previous(name, endpoint, endpoint.release, reading) if reading.serving else None
    return wanted_part(name, endpoint, endpoint.release, reading, old)


def wanted_part(
    name: str, endpoint: WantedEndpoint, release: Release, reading: SeenEndpoint, old: Tried | None
) -> Part:
    """Return the part of a wanted endpoint. old: the release that it serves again when the switch fails."""
    new = Tried(
        release.hash, endpoint.binding, release.spec.image, questions(release, endpoint.binding, endpoint.settings)
    )
    bridge = "bridge" in (release.spec.network, reading.spec.get("network"))
    return Part(name, endpoint.settings, new, old, reading.spec.get("port"), reading.proven, bridge=bridge)


def leaving_part(name: str, settings: EndpointSettings, reading: SeenEndpoint) -> Part:
    """Return the part of one that serves and is replaced. settings: those of its successor, by which it is drained."""
    assert reading.running is not None
    assert reading.binding is not None
    old = tried_of(name, reading.running.release, reading.spec, reading.binding)
    return Part(
        name,
        settings,
        None,
        old,
        int(reading.spec["port"]),
        reading.proven,
        bridge=reading.spec.get("network") == "bridge",
    )


def previous(name: str, endpoint: WantedEndpoint, release: Release, reading: SeenEndpoint) -> Tried | None:
    """Return the release to roll back to, with the key and GPUs of its proof, as long as the host still has these."""
    had = reading.proven_binding
    binding = (
        had if had and endpoint.gpus.issuperset(had.gpus) else replace(endpoint.binding, key=had.key if had else "")
    )
    if reading.proven is None or (reading.proven, binding) == (release.hash, endpoint.binding):
        return None
    return tried_of(name, reading.proven, reading.proven_spec, binding)


def _questions(
    group: Exchange, wanted: WantedEndpoints, rows_of: Callable[[Release, EndpointSettings], tuple[Question, ...]]
) -> tuple[Question, ...]:
    """Return the control machine's questions for each, as a function has them for one."""
    found: list[Question] = []
    for name in group.coming:
        endpoint = wanted.endpoints[name]
        assert isinstance(endpoint.release, Release)
        rows = rows_of(endpoint.release, endpoint.settings)
        found += rows if len(group.coming) == 1 else [replace(row, endpoint=name) for row in rows]
    return tuple(found)


def _checks(group: Exchange, wanted: WantedEndpoints, reading: SeenEndpoints) -> tuple[QualityCheck, ...]:
    """Return the questions to each that comes; one that replaces a single other one is compared with it."""
    earlier = group.leaving if len(group.coming) == len(group.leaving) == 1 else group.coming
    found = []
    for name, before in zip(group.coming, earlier, strict=True):
        endpoint = wanted.endpoints[name]
        assert isinstance(endpoint.release, Release)
        now = reading.endpoints.get(before, SeenEndpoint())
        found.append(quality_check(endpoint.release, endpoint.settings, endpoint.site, now))
    return tuple(check for check in found if check)


def _peers(group: Exchange, wanted: WantedEndpoints, reading: SeenEndpoints) -> tuple[PeerCheck, ...]:
    """Return how slow each that comes may be beside its peers; what takes another one's place has none of its name."""
    found = []
    for name in () if group.leaving else group.coming:
        endpoint = wanted.endpoints[name]
        assert isinstance(endpoint.release, Release)
        found.append(peer_check(endpoint.release, endpoint.settings, reading.endpoints.get(name, SeenEndpoint())))
    return tuple(check for check in found if check)


def _before(group: Exchange, settings: EndpointSettings, reading: SeenEndpoints) -> tuple[Question, ...]:
    """Compare only one for one: the figures of a part of the GPUs do not measure all of them."""
    if len(group.coming) == len(group.leaving) == 1:
        return questions_before(settings, reading.endpoints[group.leaving[0]])
    return ()


def _sentence(coming: list[tuple[str, str]], leaving: tuple[str, ...]) -> str:
    new = " and ".join(f"endpoint {name} at release {release}" for name, release in coming)
    them = "it" if len(coming) == 1 else "them"
    if not leaving:
        return f"switch {new} together and ask {them}"
    return f"replace endpoint {', '.join(leaving)} by {new} and ask {them}"


def _why(group: Exchange) -> str:
    if not group.leaving:
        return "each takes GPUs or a port of the other"
    gone = ", ".join(group.leaving)
    return f"the settings no longer have {gone}, and GPUs or the port go to {', '.join(group.coming)}"
