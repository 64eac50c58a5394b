"""Endpoints: the unit runs the wanted release, it answers, and it has been proven."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from rackwright.concerns.drained import DRAINED
from rackwright.concerns.endpoint import formats
from rackwright.concerns.endpoint.edits import edit_changes
from rackwright.concerns.endpoint.group.members import member_changes
from rackwright.concerns.endpoint.group.other_hosts import CODE as OTHER_HOSTS
from rackwright.concerns.endpoint.group.other_hosts import TEARDOWN, in_words, on_other_hosts
from rackwright.concerns.endpoint.group.scripts import ask_members_script
from rackwright.concerns.endpoint.peers.peer_check import longer_beside, peer_check
from rackwright.concerns.endpoint.quality.quality_check import longer, quality_check
from rackwright.concerns.endpoint.questions import questions_after, questions_before, questions_to_canary
from rackwright.concerns.endpoint.release.concern import TAKES as RELEASE_TAKES
from rackwright.concerns.endpoint.release.concern import Unresolved, binding_of, wanted_releases
from rackwright.concerns.endpoint.release.files import Release
from rackwright.concerns.endpoint.seen import BOOT_UNITS, SeenEndpoint, SeenEndpoints, as_meant, joined, parse, read
from rackwright.concerns.endpoint.switch.balancer_hooks import drain_hook_script
from rackwright.concerns.endpoint.switch.conflicts import Exchange
from rackwright.concerns.endpoint.switch.foreign_units import foreigners, refusal, set_apart
from rackwright.concerns.endpoint.switch.job import (
    drain_script,
    drain_time,
    gpus_kept_script,
    in_turn,
    join_script,
    keep_log_script,
    point_script,
    remove_script,
)
from rackwright.concerns.endpoint.switch.replacement_change import groups_among, previous, replacement, wanted_part
from rackwright.concerns.endpoint.switch.steps import DaemonRestart, HostRestart, Proved
from rackwright.concerns.endpoint.switch.transaction import endpoints_switch, start_time, switch_job
from rackwright.concerns.endpoint.wanted import WantedEndpoint, WantedEndpoints
from rackwright.concerns.endpoint.why_switch import (
    Aim,
    Due,
    is_deferred,
    misplaced,
    resting_release,
    why_admit,
    why_switch,
)
from rackwright.concerns.gpus import GPUS
from rackwright.concerns.lease import LEASED
from rackwright.concerns.marks import Mark, clear_script
from rackwright.hostside import host_script
from rackwright.messages import few
from rackwright.paths import BOOT_UNIT, UNITS, endpoint_dir, endpoint_job, unit_name
from rackwright.plan.change import Change, Job, Owned, Refuse, Shell, WriteFile
from rackwright.plan.concern import Concern, HostReading
from rackwright.plan.ownership import RECORD
from rackwright.plan.reach import client_port_of
from rackwright.plan.render import render_own
from rackwright.settings.host_settings import EndpointSettings, HostSettings

CLOSED = "700:root"
"""Mode and owner of the folder in which a container writes: no user may run the files in it."""


def wanted(settings: HostSettings, reading: HostReading) -> WantedEndpoints:
    """Return the wanted release of each endpoint, and the boot units."""
    releases = wanted_releases(settings, reading)
    return WantedEndpoints(
        {
            name: _wanted(endpoint, releases[name], settings, reading)
            for name, endpoint in settings.all_endpoints.items()
        },
        {name: render_own(f"{name}.j2") for name in BOOT_UNITS},
        reading[RECORD],
        drained=reading[DRAINED].drained is not None,
        sets_apart=settings.releases.foreign_units == "aside",
        drop_ins=settings.releases.drop_ins,
        ended_marks=tuple(reading[DRAINED].of_ended_runs(live.id if (live := reading[LEASED].live) else "")),
    )


def _wanted(
    endpoint: EndpointSettings, release: Release | Unresolved, settings: HostSettings, reading: HostReading
) -> WantedEndpoint:
    gpus = frozenset(gpu.uuid for gpu in reading[GPUS].gpus)
    group = settings.group if endpoint.size > 1 else None
    bound, keep, adopt = binding_of(endpoint, reading, settings), settings.releases.keep, settings.rollout.adopt
    return WantedEndpoint(
        endpoint, release, keep, bound, gpus, adopt, group, settings.direct_clients, site=settings.site
    )


def changes(wanted: WantedEndpoints, reading: SeenEndpoints) -> list[Change]:
    """Return the changes of the host's endpoints, those that are no longer wanted first."""
    if wanted.drained:
        return []
    reading = as_meant(reading, wanted.drop_ins)
    if not reading.docker and all(isinstance(endpoint.release, Release) for endpoint in wanted.endpoints.values()):
        return [_docker_down(name) for name in wanted.endpoints]
    others = [
        _other_format(name, endpoint.format)
        for name, endpoint in reading.endpoints.items()
        if formats.foreign(endpoint.format)
    ]
    if others:
        return others
    bindings = {name: endpoint.binding for name, endpoint in wanted.endpoints.items()}
    if moved := on_other_hosts(bindings, any(one.group for one in wanted.endpoints.values()), reading):
        return [_refuse_other_hosts(name) for name in moved]
    groups = groups_among(wanted, reading)
    together = {name for group in groups for name in (*group.coming, *group.leaving)}
    found = [_remove(name) for name in reading.endpoints if name not in wanted.endpoints and name not in together]
    by_hand = foreign_units(wanted.endpoints, reading, wanted.owned)
    if by_hand and not wanted.sets_apart:
        return [_refused(unit, sentences) for unit, sentences in by_hand.items()]
    edits = edit_changes(reading.edits, wanted.drop_ins, wanted.owned, wanted.endpoints)
    if any(isinstance(step, Refuse) for change in edits for step in change.steps):
        return edits
    found += edits
    found += _close(reading.open)
    found += [set_apart(unit, by_hand[unit]) for unit in BOOT_UNITS if unit in by_hand]
    found += _boot(wanted, reading)
    for name, endpoint in wanted.endpoints.items():
        now = reading.endpoints.get(name, SeenEndpoint())
        if sentences := by_hand.get(unit_name(name)):
            found.append(_set_apart(name, endpoint.settings, now, sentences))
        if now.caches not in (None, CLOSED):
            found.append(_close_caches(name, now))
        if name not in together:
            found += _endpoint_changes(name, endpoint, now)
    found += [change for group in groups for change in _together(group, wanted, reading)]
    return [*found, *_clear_marks(wanted.ended_marks, {change.endpoint for change in found} | together)]


def _clear_marks(ended: Sequence[Mark], busy: Container[str]) -> list[Change]:
    """Remove what ended runs have left on endpoints that have nothing to change; a switch removes its own mark."""
    marks = [mark for mark in ended if mark.endpoint not in busy]
    if not marks:
        return []
    step = Shell(clear_script(mark.name for mark in marks))
    return [Change("clear the marks of runs that have ended", "; ".join(map(str, marks)), (step,), by_itself=True)]


def _refuse_other_hosts(name: str) -> Change:
    refusal = Refuse(f"{in_words(name)}; next: {TEARDOWN}, then the deploy", code=OTHER_HOSTS, mistake=TEARDOWN)
    return Change(f"leave endpoint {name} alone", "its hosts differ", (refusal,))


def _together(group: Exchange, wanted: WantedEndpoints, reading: SeenEndpoints) -> list[Change]:
    releases = {name: wanted.endpoints[name].release for name in group.coming}
    on_host = reading.endpoints
    unknown = [
        _unresolved(name, release, on_host.get(name, SeenEndpoint()))
        for name, release in releases.items()
        if isinstance(release, Unresolved)
    ]
    return unknown or [replacement(group, wanted, reading)]


def foreign_units(wanted: Container[str], reading: SeenEndpoints, record: frozenset[Owned]) -> dict[str, list[str]]:
    """Return units and containers with Rackwright's names that it did not make, by unit, as sentences.

    wanted: endpoints. record: the host's ownership record; it has no entry for a unit that no switch has written.
    """
    found = {name: foreigners(name, reading.boot_units.get(name), False, record) for name in BOOT_UNITS}
    for name, now in reading.endpoints.items():
        if name in wanted:
            named = record if now.current else frozenset[Owned]()
            found[unit_name(name)] = foreigners(unit_name(name), now.unit, now.foreign_container, named)
    return {unit: sentences for unit, sentences in found.items() if sentences}


def _refused(unit: str, foreign: list[str]) -> Change:
    return Change(f"replace {unit}", "it was made by hand", (refusal(unit, foreign),))


def _set_apart(name: str, settings: EndpointSettings, reading: SeenEndpoint, foreign: list[str]) -> Change:
    """Return the change that moves it away; its clients are drained first, as for any switch."""
    drain = (
        drain_script(name, settings.port, settings.drain_timeout, drain_hook_script(name, settings, ""))
        if reading.serving
        else ""
    )
    return set_apart(unit_name(name), foreign, drain, drain_time(settings))


def _docker_down(name: str) -> Change:
    return Change(
        f"start endpoint {name} and ask it",
        "Docker does not answer",
        (Refuse(_DOCKER_DOWN, final=False, code="RW2403"),),
    )


_DOCKER_DOWN = "Docker does not answer, so nothing is known of the containers; next: journalctl -u docker --lines 50"


def takes_capacity(pending: Sequence[Change], reading: SeenEndpoints) -> bool:
    """Return True if these changes stop something that serves now: a switch, a restart of dockerd, or a removal."""
    steps = [step for change in pending for step in change.steps]
    switched = any(isinstance(step, Proved | DaemonRestart | HostRestart) and step.serving for step in steps)
    removed = {owned.name for change in pending for owned in change.disowns}
    return switched or any(
        endpoint.serving and unit_name(name) in removed for name, endpoint in reading.endpoints.items()
    )


def _remove(name: str) -> Change:
    owned = (Owned("directory", endpoint_dir(name)), Owned("unit", unit_name(name)))
    return Change(
        f"stop and remove endpoint {name}",
        "the settings no longer have it",
        (Shell(remove_script(name)), Shell(gpus_kept_script())),
        disowns=owned,
    )


def _boot(wanted: WantedEndpoints, reading: SeenEndpoints) -> list[Change]:
    differing = [name for name, text in wanted.boot_units.items() if reading.boot_units.get(name) != text]
    if not differing and reading.boot_enabled:
        return []
    writes = [WriteFile(f"{UNITS}/{name}", wanted.boot_units[name]) for name in differing]
    enable = Shell(f"systemctl enable --quiet --no-reload {BOOT_UNIT} && systemctl daemon-reload")
    why = "it is not enabled" if not differing else f"{few(differing)} differ or are missing"
    return [
        Change(
            "start the endpoints at boot",
            why,
            (*writes, enable, Shell(gpus_kept_script())),
            owns=tuple(Owned("unit", name) for name in BOOT_UNITS),
        )
    ]


def _close(modes: Mapping[str, str]) -> list[Change]:
    """Nothing restarts. A user who can write there can let root run a program at the next start."""
    if not modes:
        return []
    why = ", ".join(f"the mode and owner of {path} are {mode}" for path, mode in modes.items())
    step = Shell(host_script("close_paths", paths="\n".join(modes)))
    return [Change("close folders and files of Rackwright to other users", why, (step,), by_itself=True)]


def _close_caches(name: str, reading: SeenEndpoint) -> Change:
    """Nothing restarts: the container has its caches mounted, and does not come by this way."""
    folder = f"{endpoint_dir(name)}/caches"
    what = f"close the caches of endpoint {name} to other users"
    return Change(
        what,
        f"the mode and owner of {folder} are {reading.caches}",
        (Shell(host_script("close_caches", folder=folder)),),
    )


def _endpoint_changes(name: str, endpoint: WantedEndpoint, reading: SeenEndpoint) -> list[Change]:
    if isinstance(endpoint.release, Unresolved):
        return [_unresolved(name, endpoint.release, reading)]
    if endpoint.group is not None and not endpoint.group.is_head:
        return member_changes(endpoint, endpoint.release, reading, endpoint.group)
    aim = endpoint.aim(endpoint.release)
    due = why_switch(aim, reading) or why_admit(endpoint.settings, reading)
    if due:
        return [_proved(endpoint, endpoint.release, reading, due)]
    found = misplaced(aim, reading)
    return [_put_in_place(name, aim, reading, found)] if found else []


def _other_format(name: str, found: int) -> Change:
    refused = Refuse(formats.refusal(name, found), code="RW2402")
    return Change(f"leave endpoint {name} alone", "another version of Rackwright serves it", (refused,))


def _unresolved(name: str, release: Unresolved, reading: SeenEndpoint) -> Change:
    text = f"endpoint {name} cannot be switched: unknown: {', '.join(release.missing)}"
    runs = reading.running_hash is not None
    return Change(
        f"{'switch' if runs else 'start'} endpoint {name} and ask it",
        "its release is known once staged",
        (Refuse(text, final=False, code="RW2404"),),
        endpoint=name,
        restarts=f"endpoint {name}" if runs else "",
    )


def _put_in_place(name: str, aim: Aim, reading: SeenEndpoint, found: list[str]) -> Change:
    script = point_script(name, resting_release(aim, reading), aim.binding) + gpus_kept_script()
    return Change(
        f"put the unit {unit_name(name)} back in place without a restart",
        ", ".join(found),
        (Shell(script),),
        endpoint=name,
    )


def adopted_later(wanted: WantedEndpoints, reading: SeenEndpoints) -> list[str]:
    """Return a sentence for each endpoint whose wanted release is deferred."""
    return [
        f"release {release} of endpoint {name} is adopted at the next switch: it differs from the running one in its "
        "unit or its helper scripts alone; to switch now: rackwright rollout INVENTORY --adopt"
        for name, release in deferred_releases(wanted, reading).items()
    ]


def deferred_releases(wanted: WantedEndpoints, reading: SeenEndpoints) -> dict[str, str]:
    """Wanted releases, by endpoint, that differ from the running one in unit or helper scripts alone."""
    return {
        name: endpoint.release.hash
        for name, endpoint in wanted.endpoints.items()
        if isinstance(endpoint.release, Release)
        and is_deferred(endpoint.aim(endpoint.release), reading.endpoints.get(name, SeenEndpoint()))
    }


def _proved(endpoint: WantedEndpoint, release: Release, reading: SeenEndpoint, due: Due) -> Change:
    name, settings = release.spec.name, endpoint.settings
    part = wanted_part(name, endpoint, release, reading, previous(name, endpoint, release, reading))
    if due.restart:
        part = replace(part, prepare=_before_drain(endpoint, release, due))
    check, rows = quality_check(release, settings, endpoint.site, reading), questions_to_canary(release, settings)
    beside = peer_check(release, settings, reading)
    peers = (beside,) if beside else ()
    job = switch_job(endpoints_switch([part], endpoint.keep_releases, "restart" if due.restart else "prove"))
    step = Proved(
        endpoint=name,
        release=release.hash,
        job=longer_beside(longer(job, [check] if check else [], rows), peers),
        serving=reading.serving,
        restarts=due.restart,
        questions=questions_after(release, settings),
        questions_before=questions_before(settings, reading) if due.restart else (),
        client_port=client_port_of(settings, endpoint.only),
        quality=(check,) if check else (),
        canary_questions=rows,
        peers=peers,
    )
    doing = "switch endpoint {} to release {}" if due.restart else "prove endpoint {} at release {}"
    what = f"{doing.format(name, release.hash)} and ask it"
    why = due.reason + (reading.last.against(release.hash) if reading.last else "")
    return Change(what, why, (step,), owns=(Owned("unit", unit_name(name)),), endpoint=name)


def _before_drain(endpoint: WantedEndpoint, release: Release, due: Due) -> str:
    """Ask the other hosts of a group, and retain the message of an unhealthy one."""
    name = release.spec.name
    ask = ask_members_script(name, release.hash, endpoint.group.hosts) if endpoint.group else ""
    keep_log = keep_log_script(name, f"unhealthy-{release.hash}", "all") if due.keep_log else ""
    return in_turn([ask, keep_log])


def _wait_job(name: str, settings: EndpointSettings) -> Job:
    script = join_script(name, settings.load_timeout)
    return Job(endpoint_job("wait", name), f"wait for endpoint {name}", script, 2 * start_time(settings), code="RW2411")


def waits(settings: HostSettings, reading: SeenEndpoints) -> list[Job]:
    """Return jobs that wait for endpoints that are still loading, as after a reboot: nothing to change, not yet up."""
    return [
        replace(_wait_job(name, endpoint), waits=True)
        for name, endpoint in settings.all_endpoints.items()
        if name in reading.endpoints and reading.endpoints[name].loading
    ]


def boot_files(_: HostSettings) -> dict[str, str]:
    """Return the two units that start the endpoints at boot."""
    return {f"{UNITS}/{name}": render_own(f"{name}.j2") for name in BOOT_UNITS}


TAKES = RELEASE_TAKES | {"releases", "rollout"}
"""Sections of the settings that it is handed."""
ENDPOINT: Concern[WantedEndpoints, SeenEndpoints] = Concern(
    "endpoint", read, parse, wanted, changes, files=boot_files, takes=TAKES, units=BOOT_UNITS, joined=joined
)
