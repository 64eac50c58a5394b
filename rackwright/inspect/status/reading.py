"""Status values of a host, by a script that costs little more than the login, and their parser. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rackwright.addresses import is_loopback
from rackwright.concerns.docker.chains import REJECTED
from rackwright.concerns.docker.chains import gone as gone_chains
from rackwright.concerns.drained import Drained, SeenDrained, parse_mark
from rackwright.concerns.endpoint.binding import Binding
from rackwright.concerns.endpoint.container import Resolved
from rackwright.concerns.endpoint.edits import command_edits, exec_words, foreign_drop_ins, is_named
from rackwright.concerns.endpoint.formats import readable
from rackwright.concerns.endpoint.release.concern import bound_to, release_of
from rackwright.concerns.endpoint.release.files import Release
from rackwright.concerns.endpoint.seen import SeenEndpoint, binding_in, last_switch, running_of
from rackwright.concerns.endpoint.why_switch import Aim, serves_the_same
from rackwright.concerns.gateway.answer import common_address, health_url, served_certificate
from rackwright.concerns.lease import SeenLease, parse_lease
from rackwright.concerns.marks import Mark, parse_mark_file
from rackwright.concerns.models import host_path
from rackwright.concerns.watch import WATCH_TIMER
from rackwright.concerns.watch.pause import Pause, parse_pause
from rackwright.inspect.endpoint_drift import damaged_files, gone, out_of_place
from rackwright.inspect.status.script import status_script
from rackwright.messages import ReadingError, printable
from rackwright.paths import BOOT_UNIT
from rackwright.plan.reading import decode, whole_number
from rackwright.settings.group import Group
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright.settings.sections import ModelSource

Located = tuple[str, str]
"""A model's commit and its folder on the host."""


RECENT = 300
"""Seconds for which the host's own look at an engine counts."""


@dataclass(frozen=True)
class WatchedEngine:
    """The findings of the host's own look at an engine."""

    state: str = ""
    """Empty where nothing looks, or where nothing has looked for a while."""
    seconds: int = 0
    """For how long it has been so."""
    signs: str = ""
    would: str = ""
    """The act that the watch would have done with `watch.act: restart`."""

    @property
    def is_down(self) -> bool:
        """True if it hangs or has died."""
        return self.state in ("hung", "dead")

    def __str__(self) -> str:
        if not self.is_down:
            return ""
        text = f"its engine {'hangs' if self.state == 'hung' else 'is dead'}, as its host has found: {self.signs}"
        if self.would:
            text += "; the watch would have restarted it (watch.act: restart), and only reports it (tell)"
        return text


@dataclass(frozen=True)
class EndpointStatus:
    """One endpoint on the host."""

    observed: SeenEndpoint
    """`unit` is only there, or not: its text is compared on the host, which `unit_same` says."""
    active_since: int = 0
    """Seconds of the host's own clock since its start; 0 when it is not active."""
    connections: int | None = None
    died: str = ""
    """The last error of its engine's own processes, where its unit has failed."""
    drop_ins: tuple[str, ...] = ()
    """Paths of its unit's drop-ins that are not Rackwright's."""
    taken: str = ""
    """The other process that has its port."""
    watch: WatchedEngine = WatchedEngine()


@dataclass(frozen=True)
class HostStatus:
    """One host, as the script of `rackwright status` reads it."""

    uptime: int
    """Seconds since its start."""
    lease: SeenLease
    gpus: tuple[str, ...]
    """Model of each GPU that the driver has."""
    uuids: tuple[str, ...]
    """Their UUIDs; question marks in those that no process has used since the driver was loaded."""
    pins: Mapping[str, str]
    """Digest by image reference, as recorded at the first pull."""
    endpoints: Mapping[str, EndpointStatus] = field(default_factory=dict)
    closed: bool | None = None
    """True if the rules that close the ports are in the kernel as they were put; None where none were."""
    drained: Drained | None = None
    """The reason of the operator's drain, if it is drained."""
    paused: Pause | None = None
    """The pause of the watch of its engines, if there is one."""
    marks: tuple[Mark, ...] = ()
    """Marks of its other writers."""
    ended_marks: tuple[Mark, ...] = ()
    """Those of runs that have ended, which the next run clears."""
    direct: int | None = None
    """Seconds for which an operator has opened closed ports, 0 where they are closed; None where they never were."""
    repairs: str = ""
    """The number of repairs of its rules by the host within the last hour, and the last one."""
    boots: bool = True
    """False where its endpoints are not started at boot."""
    watch: str = ""
    """`disabled` where the timer of its watch is not enabled; the seconds since its last look, where that is long."""
    lacks: tuple[str, ...] = ()
    """Kernel objects that dockerd needs to start a container that publishes a port, and that are gone."""
    waits: tuple[str, ...] = ()
    """Reasons for which a start of dockerd, or of a container that publishes a port, would wait without a limit."""
    gateway: str = ""
    """State of the gateway's unit, and the status of its answer; empty on other hosts."""
    has_address: bool = False
    """True if it has the gateways' common address now."""
    certificate_end: int | None = None
    """Second since the epoch at which the gateway's certificate ends; None without one."""
    rejects: bool = False
    """True if firewalld was started after dockerd, and so rejects the clients of published ports."""


class Asked:
    """The wanted state by the settings, computed once for all hosts that share them."""

    def __init__(self, settings: HostSettings) -> None:
        self.settings = settings
        self.endpoints = settings.all_endpoints
        self.script = status_script(
            self.endpoints, health_url(settings), common_address(settings), served_certificate(settings)
        )
        """The command for a host; it changes nothing."""
        self._releases: dict[tuple[Any, ...], Release] = {}

    def release(self, name: str, digest: str, model: Located, draft: Located | None) -> Release:
        """Return an endpoint's release, the same on every host where its names lead to the same bytes."""
        key = (name, digest, model, draft)
        if key not in self._releases:
            drafted = draft or (None, None)
            resolved = Resolved(digest, model[0], model[1], drafted[0], drafted[1])
            self._releases[key] = release_of(name, self.endpoints[name], self.settings, resolved)
        return self._releases[key]

    def group_release(self, name: str) -> Release | None:
        """Return an endpoint's release from the settings and their pins alone; None when these are too few."""
        endpoint = self.endpoints[name]
        model, draft = (_located(source, self.settings, {}) for source in (endpoint.model, endpoint.draft))
        if endpoint.image_digest is None or model is None or (endpoint.draft and draft is None):
            return None
        return self.release(name, endpoint.image_digest, model, draft)


def parse(lines: Iterable[str]) -> HostStatus:
    """Return the parsed output of the script. Raises ReadingError when it broke off or makes no sense."""
    head, *blocks = _blocks(lines)
    values = _values(head)
    if pipe := values.get("pipe"):
        text = f"{pipe[0]} is a pipe, and systemd would wait for its writer without a limit; next, on it: rm {pipe[0]}"
        raise ReadingError(text, code="RW0802")
    try:
        uptime = int(values["uptime"][0])
        lease = SeenLease(0, uptime, parse_lease("\n".join(values.get("lease", ()))))
        pins = dict(pin.split(" ", 1) for pin in values.get("pin", ()))
        endpoints = {name: _endpoint(_values(body), uptime) for (_, name), *body in blocks}
        at_work = frozenset(values.get("at_work", ()))
    except (KeyError, ValueError, IndexError) as error:
        raise ReadingError(f"the host printed something unexpected: {error!r}", code="RW0802") from error
    return HostStatus(
        uptime,
        lease,
        tuple(values.get("model", ())),
        tuple(values.get("uuid", ())),
        pins,
        endpoints,
        closed=values["closed"] == ["yes"] if "closed" in values else None,
        drained=parse_mark("\n".join(values["drained"]) if "drained" in values else None),
        paused=parse_pause("\n".join(values.get("paused", ())), uptime),
        marks=(marks := _marks(values)),
        ended_marks=() if lease.live else tuple(SeenDrained(None, "", marks, at_work).of_ended_runs("")),
        direct=int(values["direct"][0]) if "direct" in values else None,
        repairs=values.get("repairs", [""])[0],
        boots=values.get("boot") != ["no"],
        watch=values.get("watch", [""])[0],
        lacks=tuple(values.get("lacks", ())),
        waits=tuple(values.get("waits", ())),
        gateway=values.get("gateway", [""])[0],
        has_address="has_address" in values,
        certificate_end=whole_number(values.get("certificate", [""])[0]),
        rejects="rejects" in values,
    )


def _marks(values: Mapping[str, list[str]]) -> tuple[Mark, ...]:
    named = zip(values.get("mark_name", ()), values.get("mark_text", ()), strict=False)
    return tuple(parse_mark_file(printable(name), decode(text)) for name, text in named)


Row = tuple[str, str]
ROW = re.compile(r"([A-Za-z_]+)[ =](.*)")


def _blocks(lines: Iterable[str]) -> list[list[Row]]:
    """Return the host's own rows, then those of each endpoint, its name first."""
    found: list[list[Row]] = [[]]
    for text in lines:
        if text == "end":
            return found
        row = ROW.fullmatch(text)
        key, value = row.groups() if row else ("", "")
        if key == "endpoint":
            found.append([])
        if key:
            found[-1].append((key, value))
    raise ReadingError("the reading broke off", code="RW0802")


def _values(rows: Iterable[Row]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, value in rows:
        found.setdefault(key, []).append(value)
    return found


def _endpoint(values: Mapping[str, list[str]], uptime: int) -> EndpointStatus:
    def value(key: str) -> str:
        return values.get(key, [""])[0]

    observed = SeenEndpoint(
        unit="" if "unit" in values else None,
        active=value("ActiveState"),
        sub=value("SubState"),
        result=value("Result"),
        enabled=value("UnitFileState") == "enabled",
        needs_reload=value("NeedDaemonReload") == "yes",
        running=running_of(value("running")),
        health=int(value("health") or 0) or None,
        current=value("current") or None,
        proven=value("proven") or None,
        spec=readable(_spec(value("spec"))),
        unit_same=value("unit") == "same",
        files_whole=value("files") == "whole",
        binding=binding_in(value("binding")),
        proven_binding=binding_in(value("bound")),
        command_edited=_command_edited(value),
        held=value("held") == "yes",
        last=last_switch({key: texts[0] for key, texts in values.items()}),
    )
    started = int(value("ActiveEnterTimestampMonotonic") or 0) // 1_000_000
    active_since = started if observed.active == "active" else 0
    return EndpointStatus(
        observed,
        active_since=active_since,
        connections=int(value("connections")) if value("connections") else None,
        died=printable(value("died"), longest=400),
        drop_ins=(*foreign_drop_ins(value("DropInPaths")), *values.get("every_service", ())),
        taken=printable(value("taken")),
        watch=_watched({key: texts[0] for key, texts in values.items()}, uptime, active_since),
    )


def _watched(values: Mapping[str, str], uptime: int, active_since: int) -> WatchedEngine:
    """Return what the host's look has found.

    An old look does not count, since the timer may have been stopped, nor one from before the unit's start.
    """
    looked, since = (int(values.get(f"watch_{key}") or 0) for key in ("looked", "since"))
    if not 0 <= uptime - looked <= RECENT or looked < active_since:
        return WatchedEngine()
    state, signs, would = (
        printable(values.get(f"watch_{key}", ""), longest=400) for key in ("state", "signs", "would")
    )
    return WatchedEngine(state, max(0, uptime - since), signs, would)


def _command_edited(value: Callable[[str], str]) -> str:
    """Return how what runs was started otherwise than its release says, where that can be judged."""
    if value("files") != "whole" or value("running").partition(" ")[0] != value("current"):
        return ""
    started = decode(value("started")).removesuffix("\n").split("\n")
    return command_edits(exec_words(decode(value("release_unit"))), started)


def _spec(text: str) -> dict[str, Any]:
    found = json.loads(decode(text)) if text else {}
    return found if isinstance(found, dict) else {}


# -- what is to be said of it


def drift_of(status: EndpointStatus, host_status: HostStatus, drop_ins: Collection[str] = ()) -> list[str]:
    """Return differences from the last deploy, as sentences; packages, rules and models are `rackwright drift`'s.

    drop_ins: those that the settings name.
    """
    meant = any(is_named(path, drop_ins) for path in status.drop_ins)
    observed = replace(status.observed, command_edited="") if meant else status.observed
    found = list(
        damaged_files(
            observed, {hash_: observed.files_whole or hash_ != observed.current for hash_ in _pointers(observed)}
        )
    )
    found += out_of_place(observed, rests=host_status.drained is not None)
    if status.taken:
        found.append(f"{status.taken}; next: rackwright drift INVENTORY")
    found += [
        f"{path} is not Rackwright's; next: rackwright drift INVENTORY"
        for path in status.drop_ins
        if not is_named(path, drop_ins)
    ]
    lost = set(observed.binding.gpus if observed.binding else ()) - set(host_status.uuids)
    if lost and not _unused(host_status):
        found.append(gone(lost))
    if host_status.closed is False and not is_loopback(str(observed.spec.get("address", ""))):
        found.append(
            "the rules that keep others out have been changed: the port may be open; next: rackwright firewall show "
            "INVENTORY"
        )
    if not host_status.boots:
        found.append(
            f"the endpoints do not start at boot: {BOOT_UNIT} is not enabled; next: pyinfra INVENTORY deploy.py"
        )
    if host_status.watch:
        found.append(_unwatched(host_status.watch))
    if host_status.lacks and observed.spec.get("network") == "bridge":
        found.append(f"it cannot start again: {gone_chains(host_status.lacks)}; next: pyinfra INVENTORY deploy.py")
        found += [f"{REJECTED}; next: pyinfra INVENTORY deploy.py"] if host_status.rejects else []
    if observed.spec.get("network") == "bridge":
        found += [f"it cannot start again: {text}" for text in host_status.waits]
    return found


def _unwatched(watch: str) -> str:
    """Return what keeps a host from looking after itself."""
    if watch.isdecimal():
        return f"its host has not looked at it for {int(watch) // 60} min; next: rackwright drift INVENTORY"
    return f"its host does not look after itself: {WATCH_TIMER} is not enabled; next: pyinfra INVENTORY deploy.py"


def _pointers(endpoint: SeenEndpoint) -> list[str]:
    return [hash_ for hash_ in (endpoint.current, endpoint.proven) if hash_]


def _unused(host_status: HostStatus) -> bool:
    """Return True if the driver does not know all UUIDs yet."""
    return any("?" in uuid for uuid in host_status.uuids)


def own_gpus(observed: SeenEndpoint, endpoint: EndpointSettings | None, host_status: HostStatus) -> list[str]:
    """Return the model of each GPU of an endpoint that the driver has; a question mark where it is unknown.

    endpoint: what the settings say of it, for an endpoint that has no binding; None: they do not have it.
    """
    uuids = host_status.uuids
    models = dict(zip(uuids, host_status.gpus, strict=True)) if len(uuids) == len(host_status.gpus) else {}
    if observed.binding is not None and observed.binding.gpus:
        bound = observed.binding.gpus
        # A part of a GPU (MIG) has a UUID of its own, which the driver's list of GPUs does not have.
        present = [one for one in bound if _unused(host_status) or one in uuids or one.startswith("MIG-")]
        return [models.get(one, "?") for one in present]
    if endpoint is None or endpoint.gpus == "all":
        return list(host_status.gpus)
    return [host_status.gpus[index] for index in endpoint.gpus if index < len(host_status.gpus)]


def wanted_aim(name: str, wanted: Asked, status: EndpointStatus, host_status: HostStatus) -> Aim | None:
    """Return what the settings ask for; None when that takes a closer look.

    A model's branch or tag counts as the commit that serves.
    """
    endpoint, observed = wanted.endpoints[name], status.observed
    digest = endpoint.image_digest or host_status.pins.get(endpoint.image)
    model, draft = (_located(source, wanted.settings, observed.spec) for source in (endpoint.model, endpoint.draft))
    binding = _binding(endpoint, observed, host_status, wanted.settings.group)
    if digest is None or model is None or (endpoint.draft and draft is None) or not binding:
        return None
    return Aim(wanted.release(name, digest, model, draft), binding)


def is_wanted(aim: Aim, observed: SeenEndpoint) -> bool:
    """Return True if what runs, or would run, serves what the settings ask for."""
    if observed.running is not None:
        return serves_the_same(aim, observed)
    return observed.spec.get("serving") == aim.release.spec.serving_hash and observed.binding == aim.binding


def _located(source: ModelSource | None, settings: HostSettings, spec: Mapping[str, Any]) -> Located | None:
    serving: Mapping[str, str] = spec.get("models", {})
    if source is None:
        return None
    commit = source.commit or serving.get(source.repository)
    return (commit, host_path(settings, source, commit)) if commit else None


def _binding(
    endpoint: EndpointSettings, observed: SeenEndpoint, host_status: HostStatus, group: Group | None
) -> Binding | None:
    if _unused(host_status) or not host_status.uuids:
        return observed.binding
    return bound_to(endpoint, dict(enumerate(host_status.uuids)), group)
