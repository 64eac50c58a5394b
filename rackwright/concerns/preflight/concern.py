"""Preflight: is this host able to run its endpoints? A row that stops ends the host's run before any write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rackwright.addresses import bare_address
from rackwright.concerns.diagnosis.changes import due_changes
from rackwright.concerns.docker import DOCKER
from rackwright.concerns.dockerd.concern import DOCKERD
from rackwright.concerns.drained import DRAINED
from rackwright.concerns.driver import DRIVER, installs_first, refusals
from rackwright.concerns.encodings import ENCODINGS
from rackwright.concerns.endpoint.concern import ENDPOINT, foreign_units
from rackwright.concerns.endpoint.group.other_hosts import on_other_hosts
from rackwright.concerns.endpoint.release.concern import binding_of
from rackwright.concerns.firewall import FIREWALL
from rackwright.concerns.gateway.concern import GATEWAY, SeenGateway
from rackwright.concerns.gpus import GPUS
from rackwright.concerns.image import IMAGE
from rackwright.concerns.lease import LEASED
from rackwright.concerns.models import MODELS, SeenModels
from rackwright.concerns.preflight import table
from rackwright.concerns.preflight.docker import DOCKER as DOCKERS_OWN
from rackwright.concerns.preflight.gateway import GATEWAYS
from rackwright.concerns.preflight.gpu import DIAGNOSED, GPU
from rackwright.concerns.preflight.machine import MACHINE, SYSTEM
from rackwright.concerns.preflight.members import MEMBERS, common, members_read, parse_members, parse_rdma
from rackwright.concerns.preflight.network import NETWORK
from rackwright.concerns.preflight.remedy import remedy
from rackwright.concerns.preflight.rights import RIGHTS
from rackwright.concerns.preflight.row import (
    Above,
    Case,
    Check,
    CheckRow,
    Disk,
    Fetch,
    Kind,
    Listener,
    Reach,
    SeenMachine,
    figures,
)
from rackwright.concerns.preflight.software import SOFTWARE
from rackwright.concerns.preflight.storage import STORAGE
from rackwright.concerns.proxy_values import proxy_values
from rackwright.hostside import host_script
from rackwright.paths import STATE
from rackwright.plan.answers import Answers
from rackwright.plan.change import Change, Job, Refuse, Step
from rackwright.plan.concern import Concern, HostReading
from rackwright.plan.ownership import RECORD
from rackwright.plan.reading import files, lines_of, pairs, whole_number
from rackwright.settings.from_bundle import address_of
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.image_reference import HUB, HUB_HOST, registry_of
from rackwright.tables import shown_width

FABRIC = "nvidia-fabricmanager.service"
TOOLKIT_CONFIG = "/etc/nvidia-container-runtime/config.toml"
FETCHING: tuple[Concern[Any, Any], ...] = (IMAGE, MODELS, ENCODINGS)
FETCHING_KINDS: Mapping[str, Kind] = {"image": "image", "models": "model", "encodings": "encoding"}
"""Kind of download of each of these concerns."""
CHECKS: tuple[Check, ...] = (*MACHINE, *DOCKERS_OWN, *SOFTWARE, *GPU, *STORAGE, *NETWORK, *MEMBERS, *RIGHTS, *GATEWAYS)
GATEWAY_CHECKS = (*SYSTEM, *GATEWAYS)
"""Checks of a host that is a gateway and serves nothing itself."""


@dataclass(frozen=True)
class WantedHost:
    """Input of the checks; the machine itself comes with the reading."""

    case: Case
    writer: str = ""
    """Holder of the host's lease when it was read; empty without one."""
    looks: tuple[Change, ...] = ()
    """Tests of the host that are due before it serves."""

    @cached_property
    def rows(self) -> list[CheckRow]:
        """All rows of the table."""
        alone = self.case.settings.is_gateway_alone
        return [row for check in CHECKS if not alone or check in GATEWAY_CHECKS for row in check.rows(self.case)]


# -- read


def read(settings: HostSettings) -> str:
    """Print the state of the machine, its file systems, its ports, and the servers it needs."""
    proxies = proxy_values(settings)
    return members_read(settings) + host_script(
        "preflight_read",
        paths=" ".join((settings.models.folder, settings.encodings.folder, STATE)),
        fetched=" ".join((settings.models.folder, settings.encodings.folder)),
        ports=" ".join(sorted({*map(str, _listened(settings))})),
        endpoints=" ".join(settings.all_endpoints),
        state=STATE,
        urls=" ".join(f"{name}={url}" for name, url in _urls(settings)),
        proxies=" ".join(f"{key}={value}" for key, value in proxies.items() if value),
    )


def _listened(settings: HostSettings) -> Iterator[int]:
    yield from (endpoint.port for endpoint in settings.all_endpoints.values())
    if settings.is_gateway:
        yield settings.gateway.port


def joined(output: str, answers: Answers) -> str:
    """Return the reading's lines, with Docker's names of containers, and the fabric manager's state."""
    lines = [_named(row, answers) if row.startswith("port ") else row for row in output.split("\n")]
    return "\n".join([*lines, *(f"fabric.{key}={answers.unit(FABRIC, key)}" for key in ("LoadState", "ActiveState"))])


def _named(row: str, answers: Answers) -> str:
    """Return a listener with its container's name: its process's, or the one that publishes the port of Docker's."""
    words = row.split(" ")
    listener = _listener(words[1:])
    running = [one for one in answers.containers or () if one.running]
    named = [one.name for one in running if one.id == words[4]]
    if listener.is_dockers:
        publishing = [one for one in running if listener.port in one.ports]
        at = [one for one in publishing if (listener.address, listener.port) in one.published]
        named += [one.name for one in at or publishing]
    return " ".join([*words[:4], named[0] if named else "-", *words[5:]])


def _urls(settings: HostSettings) -> Iterator[tuple[str, str]]:
    """Yield the first URL of each kind of download; for every image, its registry. A mere gateway downloads none."""
    if settings.is_gateway_alone:
        return
    images = (endpoint.image for endpoint in settings.all_endpoints.values())
    for registry in dict.fromkeys(registry_of(image) for image in images):
        yield "registry", f"{_asked_at(settings, registry)}/v2/"
    yield "hub", settings.mirrors.hub
    yield "encodings", f"{settings.mirrors.encodings.rstrip('/')}/o200k_base.tiktoken"


def _asked_at(settings: HostSettings, registry: str) -> str:
    """Return the address where dockerd pulls a registry's images: for Docker Hub its mirror, if it has one."""
    if bundle := address_of(settings):
        return bundle
    if registry != HUB:
        return f"https://{registry}"
    mirrors = settings.docker.daemon.get("registry-mirrors")
    addresses = [str(mirror) for mirror in mirrors] if isinstance(mirrors, list | tuple) else []
    return (addresses or [f"https://{HUB_HOST}"])[0].rstrip("/")


def parse(output: str) -> SeenMachine:
    """Parse the reading."""
    lines = [row.split(" ") for row in lines_of(output)]
    return SeenMachine(
        values=pairs("\n".join(row for row in lines_of(output) if " " not in row.split("=", 1)[0])),
        disks=tuple(_disk(words[1:]) for words in lines if words[0] == "disk" and len(words) >= 7),
        listeners=tuple(_listener(words[1:]) for words in lines if words[0] == "port"),
        reached=tuple(Reach(w[1], int(w[2]), int(w[3] or 0), w[4]) for w in lines if w[0] == "reach" and len(w) == 5),
        toolkit_config=files(output).get(TOOLKIT_CONFIG),
        readonly=frozenset(_named_by("readonly", lines)),
        hung=_named_by("hung", lines),
        odd_units=tuple((words[1], words[2]) for words in lines if words[0] == "odd" and len(words) == 3),
        above=tuple(Above(*words[1:]) for words in lines if words[0] == "above" and len(words) == 4),
        rootless=tuple(sorted(_named_by("rootless", lines))),
        members=parse_members(lines),
        rdma=parse_rdma(lines),
    )


def _named_by(kind: str, lines: list[list[str]]) -> tuple[str, ...]:
    return tuple(words[1] for words in lines if words[0] == kind and len(words) == 2)


def _disk(words: list[str]) -> Disk:
    path, *fields = [cell for cell in words if cell]
    free, inodes, kind, source, mount = fields[:5]
    return Disk(path, int(free) * 1024, whole_number(inodes), kind, source, mount)


def _listener(words: list[str]) -> Listener:
    name, container, unit, user, address = ["" if cell == "-" else cell for cell in [*words[2:], *["-"] * 5][:5]]
    return Listener(int(words[0]), int(words[1]), name, container, unit, user, bare_address(address))


# -- wanted


def wanted(settings: HostSettings, reading: HostReading) -> WantedHost:
    """Return the input of the checks."""
    fetches = tuple(_fetches(settings, reading))
    foreign = foreign_units(settings.all_endpoints, reading[ENDPOINT], reading[RECORD])
    formats = {name: endpoint.format for name, endpoint in reading[ENDPOINT].endpoints.items()}
    models = reading[MODELS] if MODELS.name in reading.by_concern else SeenModels((), frozenset())
    return WantedHost(
        Case(
            settings,
            reading[PREFLIGHT],
            reading[GPUS],
            reading[DOCKER],
            fetches,
            reading[RECORD],
            foreign,
            formats,
            reading.manages(DOCKERD if reading[DOCKER].serving else DOCKER),
            reading.manages(FIREWALL),
            models.read_only,
            tuple(sorted({model.path for model in models.models} & models.opened)),
            {host: common(theirs[PREFLIGHT], theirs[GPUS]) for host, theirs in reading.others.items()},
            reading.by_concern.get(GATEWAY.name, SeenGateway()),
            *_driver_to_come(settings, reading),
            _elsewhere(settings, reading),
        ),
        _writer(reading),
        tuple(due_changes(settings, reading)),
    )


def _elsewhere(settings: HostSettings, reading: HostReading) -> tuple[str, ...]:
    """Return endpoints that other hosts serve than the settings want; none on a drained host, which stays as it is."""
    drained = DRAINED.name in reading.by_concern and reading[DRAINED].drained is not None
    if drained or not reading.manages(ENDPOINT):
        return ()
    bindings = {name: binding_of(one, reading, settings) for name, one in settings.all_endpoints.items()}
    return tuple(on_other_hosts(bindings, settings.group is not None, reading[ENDPOINT]))


def _driver_to_come(settings: HostSettings, reading: HostReading) -> tuple[str, tuple[str, ...]]:
    """Return the version of the first driver that this deploy installs, and what is in the way of the wanted one."""
    if DRIVER.name not in reading.by_concern or not reading.manages(DRIVER):
        return "", ()
    wanted, now = DRIVER.wanted(settings, reading), reading[DRIVER]
    fixes = tuple(f"{row.text}: {row.fix}" for row in refusals(wanted, now))
    return (wanted.version if installs_first(wanted, now) else ""), fixes


def _writer(reading: HostReading) -> str:
    live = reading[LEASED].live if LEASED.name in reading.by_concern else None
    return f"{live.holder.user}@{live.holder.machine} ({live.holder.purpose})" if live else ""


def _fetches(settings: HostSettings, reading: HostReading) -> Iterator[Fetch]:
    """Yield the downloads of the other concerns, from their changes."""
    for concern in FETCHING:
        for change in concern.pending(settings, reading) if reading.manages(concern) else ():
            fetch = fetch_of(concern.name, change)
            if fetch is not None:
                yield fetch


def fetch_of(concern: str, change: Change) -> Fetch | None:
    """Return the download of a concern's change; None without one."""
    kind = FETCHING_KINDS.get(concern)
    return _sized(change, kind) if kind and any(_fetches_something(step) for step in change.steps) else None


def _fetches_something(step: Step) -> bool:
    """Return True for a download: a job, or, while it waits for an earlier concern, a refusal that is not final."""
    return isinstance(step, Job) or (isinstance(step, Refuse) and not step.final)


def _sized(change: Change, kind: Kind) -> Fetch:
    if change.size:
        return Fetch(change.what, kind, change.size, True)
    entries = figures().get(f"{kind}s") or []
    usual = next((int(entry["about"]) for entry in entries if entry["repository"] == change.fetches), 0)
    # The lock file has an image's files as they are fetched, and not how much they are unpacked.
    return Fetch(change.what, kind, change.about or usual, False, usual if kind == "image" else 0)


# -- changes


def changes(wanted: WantedHost, _: SeenMachine) -> list[Change]:
    """Return a refusal with the failing rows when one stops; otherwise the tests that are due."""
    stopping = [row for row in wanted.rows if row.stops]
    if not stopping:
        return list(wanted.looks)
    names = ", ".join(dict.fromkeys(row.name for row in stopping))
    written = "nothing more is written to it" if _may_have_written(wanted, stopping) else "nothing was written to it"
    text = f"this host cannot run its endpoints; {written}\n{table.listing(stopping)}"
    if wanted.writer:
        # During a switch, ports and GPUs belong to containers that are about to stop.
        text += f"\n{wanted.writer} holds this host's lease: what stops it may pass with that run; wait for its end"
    refusal = Refuse(text, code="RW3101", mistake=remedy(wanted.case, stopping))
    return [Change("stop here", f"preflight: {names}", (refusal,))]


def _may_have_written(wanted: WantedHost, stopping: Sequence[CheckRow]) -> bool:
    """Return True if this run may have written to the host before it is stopped: a report, or its first driver."""
    return wanted.case.settings.driver.first_by_deploy or any(row.code == DIAGNOSED for row in stopping)


def report(wanted: WantedHost, _: SeenMachine) -> str:
    """Return one line and the warnings; the refusal has the rows that stop."""
    warnings = [row for row in wanted.rows if row.warns]
    return "\n".join(filter(None, [table.summary(wanted.rows), table.warned(warnings)]))


def details(wanted: WantedHost, _: SeenMachine) -> str:
    """Return the report with every row."""
    width = shown_width()
    return f"{table.summary(wanted.rows)}\n{table.render(wanted.rows, width and width - table.PREFIX)}"


PREFLIGHT: Concern[WantedHost, SeenMachine] = Concern(
    "preflight", read, parse, wanted, changes, report, details=details, looks=True, units=(FABRIC,), joined=joined
)
