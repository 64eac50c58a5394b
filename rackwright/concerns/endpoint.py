"""Endpoints: the unit runs the wanted release, it answers, and it has been proven.

Restart by comparison, never by memory: the running container carries the hash of the spec that it was
started with, and a restart is due exactly when that differs, or when nothing runs that should.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rackwright.change import Change, DaemonRestart, Job, Owned, Proved, Refuse, Shell, WriteFile
from rackwright.concern import Concern, HostReading
from rackwright.concerns.release import Unresolved, wanted_releases
from rackwright.engines.version import bare
from rackwright.fullproof import compared_questions, full_questions, gpu_counters
from rackwright.hostside import host_script
from rackwright.paths import STATE, container_name, endpoint_dir, unit_name
from rackwright.proof import Question, chat, gpu_errors, gpus_inside, model_name, release_runs, version
from rackwright.reach import Door
from rackwright.reading import decode, files, pairs
from rackwright.release import Release
from rackwright.render import render
from rackwright.settings.model import EndpointSettings, HostSettings
from rackwright.spec import last_part, local_url, served_name, url_of
from rackwright.specdiff import reasons
from rackwright.switchjob import (
    UNITS,
    commit_script,
    drain_script,
    gpus_kept_script,
    join_script,
    keep_log_script,
    point_script,
    pointed_at_script,
    remove_script,
    switch_script,
)
from rackwright.switchnews import LastSwitch
from rackwright.transaction import Tried, Way, drain_hook_script, start_time, transaction

_SPEC_KEYS = frozenset({"hash", "image", "address", "port", "mounts", "gpus"})
LOOPBACK = ("127.0.0.1", "::1", "localhost")
BOOT_UNITS = ("rackwright.target", "rackwright-boot.service")


@dataclass(frozen=True)
class SeenEndpoint:
    """One endpoint as it is on the host."""

    unit: str | None = None
    """Text of the unit file."""
    active: str = "inactive"
    sub: str = "dead"
    result: str = "success"
    enabled: bool = False
    needs_reload: bool = False
    running_hash: str | None = None
    """Label of the running container: the spec that it was started with."""
    health: int | None = None
    """HTTP status of /health; None when it was not asked."""
    current: str | None = None
    proven: str | None = None
    spec: Mapping[str, Any] = field(default_factory=dict)
    """spec.json of the current release."""
    proven_spec: Mapping[str, Any] = field(default_factory=dict)
    """spec.json of the proven release."""
    admitted: bool = True
    """False from the beginning of a switch until the site's ready hook has let clients in again."""
    last: LastSwitch | None = None

    @property
    def serving(self) -> bool:
        """True when the endpoint answers now."""
        return self.active == "active" and self.health == 200

    @property
    def loading(self) -> bool:
        """True between a start and the first answer of /health; not while systemd waits to start it again."""
        return self.active == "activating" and self.sub != "auto-restart"


@dataclass(frozen=True)
class SeenEndpoints:
    """All endpoints on the host by name, and the two units that start them at boot."""

    docker: bool
    endpoints: Mapping[str, SeenEndpoint]
    boot_units: Mapping[str, str | None]
    boot_enabled: bool


@dataclass(frozen=True)
class WantedEndpoint:
    """One endpoint as it should be."""

    settings: EndpointSettings
    release: Release | Unresolved
    keep_releases: int


@dataclass(frozen=True)
class WantedEndpoints:
    """All endpoints as they should be, and the boot units' text."""

    endpoints: Mapping[str, WantedEndpoint]
    boot_units: Mapping[str, str]


def read(settings: HostSettings) -> str:
    """State of every endpoint that is wanted or there: unit, container, health, pointers."""
    urls = "\n".join(f"{name} {local_url(endpoint)}" for name, endpoint in settings.all_endpoints.items())
    return host_script("read_endpoints", units=UNITS, home=f"{STATE}/endpoints", urls=urls)


def parse(output: str) -> SeenEndpoints:
    """Parse the reading."""
    head, *blocks = ("\n" + output).split("\nendpoint ")
    shown, values = files(head), pairs(head)
    return SeenEndpoints(
        docker=values["docker"] == "up",
        endpoints=dict(_endpoint(block) for block in blocks),
        boot_units={name: shown.get(f"{UNITS}/{name}") for name in BOOT_UNITS},
        boot_enabled=values.get("boot") == "enabled",
    )


def _endpoint(block: str) -> tuple[str, SeenEndpoint]:
    name, *lines = block.splitlines()
    words = dict(line.split(" ", 1) for line in lines if line.startswith(("unit ", "spec ", "proven_spec ")))
    values = pairs("\n".join(line.removeprefix("value ") for line in lines if line.startswith("value ")))
    spec = _json(words.get("spec"))
    return name, SeenEndpoint(
        unit=decode(words["unit"]) if "unit" in words else None,
        active=values.get("ActiveState", "inactive"),
        sub=values.get("SubState", "dead"),
        result=values.get("Result", "success"),
        enabled=values.get("UnitFileState") == "enabled",
        needs_reload=values.get("NeedDaemonReload") == "yes",
        running_hash=values.get("running") or None,
        health=int(values["health"]) if values.get("health") else None,
        current=values.get("current") or None,
        proven=values.get("proven") or None,
        spec=spec,
        proven_spec=_json(words.get("proven_spec")) or (spec if values.get("proven") == values.get("current") else {}),
        admitted=values.get("admitted") != "no",
        last=last_switch(values),
    )


def last_switch(values: Mapping[str, str]) -> LastSwitch | None:
    """How the last switch ended, from the pairs `last_...` of a reading; None when there was none."""
    told = [values.get(f"last_{key}", "") for key in ("release", "outcome", "time", "reason")]
    return LastSwitch(*told) if told[0] else None


def _json(word: str | None) -> dict[str, Any]:
    """A spec.json; one that was spoilt by hand counts as none, and its release is written again."""
    try:
        found = json.loads(decode(word)) if word else None
    except ValueError:
        return {}
    return found if isinstance(found, dict) and found.keys() >= _SPEC_KEYS else {}


def wanted(settings: HostSettings, reading: HostReading) -> WantedEndpoints:
    """The wanted release of each endpoint, and the boot units."""
    releases = wanted_releases(settings, reading)
    return WantedEndpoints(
        {
            name: WantedEndpoint(own, releases[name], settings.keep_releases)
            for name, own in settings.all_endpoints.items()
        },
        {name: render(f"{name}.j2") for name in BOOT_UNITS},
    )


def changes(asked: WantedEndpoints, seen: SeenEndpoints) -> list[Change]:
    """What must happen to the host's endpoints, those that are no longer wanted first."""
    if not seen.docker and all(isinstance(own.release, Release) for own in asked.endpoints.values()):
        return [Change("switch the endpoints", "Docker does not answer", (Refuse(_DOCKER_DOWN, final=False),))]
    found = [_remove(name) for name in seen.endpoints if name not in asked.endpoints]
    found += _boot(asked, seen)
    for name, own in asked.endpoints.items():
        found += _endpoint_changes(name, own, seen.endpoints.get(name, SeenEndpoint()))
    return found


_DOCKER_DOWN = "Docker does not answer, so nothing is known of the containers; next: journalctl -u docker --lines 50"


def takes_capacity(pending: Sequence[Change], seen: SeenEndpoints) -> bool:
    """True when these changes stop something that serves now: a switch, a restart of dockerd, or a removal."""
    steps = [step for change in pending for step in change.steps]
    switched = any(isinstance(step, Proved | DaemonRestart) and step.serving for step in steps)
    removed = {owned.name for change in pending for owned in change.disowns}
    return switched or any(own.serving and unit_name(name) in removed for name, own in seen.endpoints.items())


def _remove(name: str) -> Change:
    owned = (Owned("directory", endpoint_dir(name)), Owned("unit", unit_name(name)))
    return Change(
        f"stop and remove endpoint {name}",
        "the settings no longer have it",
        (Shell(remove_script(name)), Shell(gpus_kept_script())),
        disowns=owned,
    )


def _boot(asked: WantedEndpoints, seen: SeenEndpoints) -> list[Change]:
    differing = [name for name, text in asked.boot_units.items() if seen.boot_units.get(name) != text]
    if not differing and seen.boot_enabled:
        return []
    writes = [WriteFile(f"{UNITS}/{name}", asked.boot_units[name]) for name in differing]
    enable = Shell("systemctl daemon-reload && systemctl enable --quiet rackwright-boot.service")
    why = "it is not enabled" if not differing else f"{', '.join(differing)} differ or are missing"
    return [
        Change(
            "start the endpoints at boot",
            why,
            (*writes, enable, Shell(gpus_kept_script())),
            owns=tuple(Owned("unit", name) for name in BOOT_UNITS),
        )
    ]


def _endpoint_changes(name: str, own: WantedEndpoint, seen: SeenEndpoint) -> list[Change]:
    if isinstance(own.release, Unresolved):
        return [_unresolved(name, own.release)]
    due = why_switch(own.release, seen) or _why_admit(own.settings, seen)
    if due:
        return [_proved(own, own.release, seen, due)]
    differing = _differing(own.release, seen)
    return [_rewrite_unit(own.release, differing)] if differing else []


def _differing(release: Release, seen: SeenEndpoint) -> list[str]:
    """What is not as wanted around an endpoint that runs and has been proven."""
    rows = {
        "its text differs": seen.unit != release.unit,
        "systemd has not read it again": seen.needs_reload,
        "it is not enabled at boot": not seen.enabled,
        f"`current` points to {seen.current or 'nothing'}": seen.current != release.hash,
    }
    return [text for text, differs in rows.items() if differs]


def _unresolved(name: str, release: Unresolved) -> Change:
    text = f"endpoint {name} cannot be switched: unknown: {', '.join(release.missing)}"
    return Change(f"start endpoint {name} and ask it", "its release is known once staged", (Refuse(text, final=False),))


@dataclass(frozen=True)
class Due:
    """Why an endpoint must be switched or proven; whether that takes a restart, and keeps the old log first."""

    reason: str
    restart: bool = True
    keep_log: bool = False


def why_switch(release: Release, seen: SeenEndpoint) -> Due | None:
    """The reason to switch, or to start and prove; None when the endpoint is as wanted."""
    at_release = seen.current == release.hash and seen.unit == release.unit and not seen.needs_reload
    if seen.loading and at_release and seen.running_hash in (None, release.hash):
        return None if seen.proven == release.hash else Due("it is loading and was never proven", restart=False)
    if seen.running_hash not in (None, release.hash):
        return Due(reasons(seen.spec, release.spec.as_json()) or f"it runs release {seen.running_hash}")
    if seen.running_hash is None or seen.active != "active":
        return Due(_why_not_running(seen))
    if seen.health != 200:
        return Due(f"it runs, but /health answers {seen.health or 'nothing'}", keep_log=True)
    return None if seen.proven == release.hash else Due("it runs, but was never proven", restart=False)


def _why_admit(settings: EndpointSettings, seen: SeenEndpoint) -> Due | None:
    """A switch that broke off at its very end leaves the endpoint out of the site's balancer."""
    if settings.ready_hook and not seen.admitted:
        return Due("clients were not let in again after its last switch", restart=False)
    return None


def _why_not_running(seen: SeenEndpoint) -> str:
    if seen.current is None:
        return "it has never run here"
    if seen.active == "failed":
        return f"it gave up ({seen.result})"
    return f"it should run, but is {seen.active} ({seen.sub})"


def _rewrite_unit(release: Release, differing: list[str]) -> Change:
    name = release.spec.name
    unit = unit_name(name)
    steps = (WriteFile(f"{UNITS}/{unit}", release.unit), Shell(point_script(name, release.hash)))
    return Change(f"write the unit {unit} without a restart", ", ".join(differing), steps)


def _proved(own: WantedEndpoint, release: Release, seen: SeenEndpoint, due: Due) -> Change:
    name, settings = release.spec.name, own.settings
    new = Tried(release.hash, release.spec.image, questions(release, settings))
    way = _way(own, release, seen, due)
    step = Proved(
        endpoint=name,
        release=release.hash,
        job=transaction(name, settings, way, new, _previous(name, seen, release.hash), seen.proven),
        serving=seen.serving,
        restarts=due.restart,
        questions=_questions_after(release, settings),
        questions_before=_questions_before(settings, seen) if due.restart else (),
        door=None if settings.address in LOOPBACK else Door(settings.port, settings.allow_from),
    )
    doing = "switch endpoint {} to release {}" if due.restart else "prove endpoint {} at release {}"
    what = f"{doing.format(name, release.hash)} and ask it"
    why = due.reason + (seen.last.against(release.hash) if seen.last else "")
    return Change(what, why, (step,), owns=(Owned("unit", unit_name(name)),))


def _way(own: WantedEndpoint, release: Release, seen: SeenEndpoint, due: Due) -> Way:
    """How the release is reached; the connections of what runs now are drained, at its own port."""
    name, settings = release.spec.name, own.settings
    commit = commit_script(name, release.hash, own.keep_releases)
    if not due.restart:
        prepare, forward = pointed_at_script(name, release.hash, settings.load_timeout)
        return Way(prepare, forward, commit, start_time(settings))
    kept = keep_log_script(name, f"unhealthy-{release.hash}", "all") if due.keep_log else ""
    hook = drain_hook_script(name, settings, release.hash)
    drain = drain_script(name, seen.spec.get("port", settings.port), settings.drain_timeout, hook)
    forward = switch_script(name, release.hash, settings.load_timeout)
    return Way(kept + drain, forward, commit, settings.hook_timeout + settings.drain_timeout + start_time(settings))


def _previous(name: str, seen: SeenEndpoint, failed: str) -> Tried | None:
    if seen.proven is None or seen.proven == failed:
        return None
    return tried_of(name, seen.proven, seen.proven_spec)


def tried_of(name: str, release: str, spec: Mapping[str, Any]) -> Tried:
    """A release that was proven earlier, to be asked again; without its spec.json it can only be started."""
    return Tried(release, spec["image"], basic_questions(name, spec)) if spec else Tried(release, "", ())


def _wait_job(name: str, settings: EndpointSettings) -> Job:
    script = join_script(name, settings.load_timeout)
    return Job(f"wait-{name}", f"wait for endpoint {name}", script, 2 * start_time(settings))


def waits(settings: HostSettings, seen: SeenEndpoints) -> list[Job]:
    """Jobs that wait for endpoints that are still loading, as after a reboot: nothing to change, but not up yet."""
    return [
        replace(_wait_job(name, own), waits=True)
        for name, own in settings.all_endpoints.items()
        if name in seen.endpoints and seen.endpoints[name].loading
    ]


def questions(release: Release, settings: EndpointSettings) -> tuple[Question, ...]:
    """The basic proof of an endpoint: identity, GPUs, and a chat answer that is read and checked."""
    rows = basic_questions(release.spec.name, release.facts)
    errors = gpu_errors(endpoint_dir(release.spec.name))
    return (*rows[:-1], *_version(release.spec.health_url, settings), rows[-1], errors)


def _questions_after(release: Release, settings: EndpointSettings) -> tuple[Question, ...]:
    """What the control machine asks once the basic proof has passed."""
    if settings.gate == "basic":
        return ()
    rows = full_questions(release.spec.health_url, served_name(settings), settings)
    return (*rows, gpu_errors(endpoint_dir(release.spec.name)))


def _questions_before(settings: EndpointSettings, seen: SeenEndpoint) -> tuple[Question, ...]:
    """What the full gate compares: asked of what serves now; of a host that does not serve, its GPUs alone."""
    if settings.gate == "basic":
        return ()
    if not seen.serving or not seen.spec:
        return (gpu_counters(),)
    base = url_of(seen.spec["address"], seen.spec["port"])
    return compared_questions(base, last_part(seen.spec["mounts"][0].split(":")[1]), settings)


def basic_questions(name: str, spec: Mapping[str, Any]) -> tuple[Question, ...]:
    """What any release must answer, from its spec.json alone, so that an old one can be asked as well."""
    base, container = url_of(spec["address"], spec["port"]), container_name(name)
    model = last_part(spec["mounts"][0].split(":")[1])  # the model is mounted first
    return (
        release_runs(container, spec["hash"]),
        gpus_inside(container, len(spec["gpus"])),
        model_name(base, model),
        chat(base, model),
    )


def _version(base: str, settings: EndpointSettings) -> list[Question]:
    """SGLang has no /version."""
    return [] if settings.engine_kind == "sglang" else [version(base, bare(settings.version))]


def boot_files(_: HostSettings) -> dict[str, str]:
    """The two units that start the endpoints at boot."""
    return {f"{UNITS}/{name}": render(f"{name}.j2") for name in BOOT_UNITS}


ENDPOINT: Concern[WantedEndpoints, SeenEndpoints] = Concern("endpoint", read, parse, wanted, changes, files=boot_files)
