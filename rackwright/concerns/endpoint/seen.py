"""The host's endpoints as they are: unit, container, health, pointers, and how the last switch ended."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rackwright.concerns.endpoint.binding import Binding, parse_binding
from rackwright.concerns.endpoint.container import FORMAT, local_url
from rackwright.concerns.endpoint.edits import (
    LIMITS,
    SeenEdits,
    command_edits,
    drop_in,
    exec_words,
    is_meant,
    limit_edits,
)
from rackwright.concerns.endpoint.formats import format_of, readable
from rackwright.concerns.endpoint.switch.events import LastSwitch
from rackwright.hostside import host_script
from rackwright.paths import (
    BOOT_UNIT,
    ENDPOINT_LABEL,
    ETC,
    MARKS,
    RESTORE_UNIT,
    RUN,
    STATE,
    TARGET,
    UNITS,
    container_name,
    unit_name,
)
from rackwright.plan.answers import Answers
from rackwright.plan.reading import decode, files, pairs
from rackwright.settings.host_settings import HostSettings

FILES = ("started ", "unit ", "current_unit ", "spec ", "proven_spec ", "binding ", "proven_binding ")
"""Begin lines of the reading that carry a whole file."""
RUNNING_PARTS = ("release", "serving", "binding")
"""A container's labels: the values that it was started with."""
PLAIN_PATH = re.compile(r"/[A-Za-z0-9._/-]+")
BOOT_UNITS = (TARGET, BOOT_UNIT, RESTORE_UNIT)


@dataclass(frozen=True)
class Running:
    """A running container's labels: the values that it was started with."""

    release: str
    serving: str
    binding: str


@dataclass(frozen=True)
class SeenEndpoint:
    """One endpoint as it is on the host."""

    unit: str | None = None
    """Text of the unit file."""
    unit_same: bool = False
    """True if it is the current release's."""
    active: str = "inactive"
    sub: str = "dead"
    result: str = "success"
    enabled: bool = False
    needs_reload: bool = False
    running: Running | None = None
    foreign_container: bool = False
    """True if the endpoint's container name is taken by a container that is not Rackwright's."""
    health: int | None = None
    """HTTP status of /health; None when it was not asked."""
    current: str | None = None
    proven: str | None = None
    spec: Mapping[str, Any] = field(default_factory=dict)
    """spec.json of the current release."""
    proven_spec: Mapping[str, Any] = field(default_factory=dict)
    """spec.json of the proven release."""
    proven_binding: Binding | None = None
    """The binding with which the proven release was proven last."""
    files_whole: bool = False
    """True if the current release's files are as they were written."""
    format: int = FORMAT
    """Of spec.json, where a newer version of Rackwright wrote the current or the proven release."""
    binding: Binding | None = None
    """The binding that the next start reads; None when it is missing or was changed by hand."""
    admitted: bool = True
    """False from the beginning of a switch until the site's ready hook has let clients in again."""
    last: LastSwitch | None = None
    caches: str | None = None
    """Mode and owner of the folder in which its container writes, as `700:root`; None where it has none yet."""
    command_edited: str = ""
    """Option names in which the running container's `docker run` differs from its release's."""
    limits_edited: str = ""
    """Limits of the running container that its release does not set."""
    held: bool = False
    """True when what it would start was never proven, and could not be taken back at boot: it does not start."""
    sick: bool = False
    """True when the host's watch has given it up: it stays out of service until a run proves it."""
    askable: bool = False
    """True when the proven release's questions are on the host, so that the watch can prove it."""

    @property
    def running_hash(self) -> str | None:
        """The release that the running container was started with."""
        return self.running.release if self.running else None

    def has_proven(self, release: str, binding: Binding) -> bool:
        """Return True if a release is the one that was proven last, with this very binding."""
        return (self.proven, self.proven_binding) == (release, binding)

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
    """All endpoints on the host by name, and the units that start them at boot."""

    docker: bool
    endpoints: Mapping[str, SeenEndpoint]
    boot_units: Mapping[str, str | None]
    boot_enabled: bool
    replaced: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Endpoints that others took the place of, with their names: nothing of them runs, and their releases stay."""
    open: Mapping[str, str] = field(default_factory=dict)
    """Folders and files of Rackwright that others than root may write to, with mode and owner as `777:root`."""
    edits: SeenEdits = field(default_factory=SeenEdits)
    """Edits of Rackwright's units outside their files."""


def read(settings: HostSettings) -> str:
    """State of every endpoint that is wanted or there: unit, health, pointers; its container is Docker's answer."""
    urls = "\n".join(f"{name} {local_url(endpoint)}" for name, endpoint in settings.all_endpoints.items())
    return host_script(
        "read_endpoints",
        units=UNITS,
        home=f"{STATE}/endpoints",
        marks=MARKS,
        groups=f"{RUN}/groups",
        urls=urls,
        own_folders=f"{STATE} {ETC} {RUN}",
    )


def joined(output: str, answers: Answers) -> str:
    """Return the reading's own lines, and behind each endpoint's name the output of systemd and Docker about it."""
    docker = "down" if answers.containers is None else "up"
    found = [f"docker={docker}", f"boot={answers.unit(BOOT_UNIT, 'UnitFileState')}", *_elsewhere_lines(answers)]
    for row in output.split("\n"):
        found.append(row)
        if row.startswith("endpoint "):
            found += _state_lines(row.removeprefix("endpoint "), answers)
    return "\n".join(found)


def as_meant(reading: SeenEndpoints, names: Collection[str]) -> SeenEndpoints:
    """Return the same without an owner's drop-ins' changes of a command. names: those that the settings name."""
    if not reading.edits.drop_ins or not names:
        return reading
    meant = {name for name in reading.endpoints if is_meant(reading.edits, names, unit_name(name))}
    found = {
        name: replace(endpoint, command_edited="") if name in meant else endpoint
        for name, endpoint in reading.endpoints.items()
    }
    return replace(reading, endpoints=found)


_INSTANCE = re.compile(r"@[^.]*\.")
"""The part of a name that tells one instance of a template from the others."""


def _elsewhere_lines(answers: Answers) -> Iterator[str]:
    for unit in answers.units:
        path = "/dev/null" if answers.unit(unit, "LoadState") == "masked" else answers.unit(unit, "FragmentPath")
        if unit.startswith("rackwright") and path not in ("", f"{UNITS}/{_INSTANCE.sub('@.', unit)}"):
            yield f"elsewhere {unit} {path}"


def _state_lines(name: str, answers: Answers) -> Iterator[str]:
    for key in ("ActiveState", "SubState", "Result", "NeedDaemonReload", "UnitFileState"):
        if key in answers.units.get(unit_name(name), {}):
            yield f"value {key}={answers.unit(unit_name(name), key)}"
    container = answers.named(container_name(name))
    if container is None:
        return
    # A container of that name without Rackwright's label was made by hand.
    if not container.labels.get(ENDPOINT_LABEL):
        yield "value container=foreign"
    if container.running:
        yield f"value limits={json.dumps(_limits(answers.inspected.get(container.name, {})))}"
        yield f"value running={' '.join(container.labels.get(f'rackwright.{part}', '') for part in RUNNING_PARTS)}"


def _limits(inspected: Mapping[str, Any]) -> dict[str, Any]:
    found = inspected.get("HostConfig")
    return {name: found.get(name) for name in LIMITS} if isinstance(found, dict) else {}


def parse(output: str) -> SeenEndpoints:
    """Parse the reading."""
    head, *blocks = ("\n" + output).split("\nendpoint ")
    shown, values = files(head), pairs(head)
    return SeenEndpoints(
        docker=values["docker"] == "up",
        endpoints=dict(_endpoint(block) for block in blocks),
        boot_units={name: shown.get(f"{UNITS}/{name}") for name in BOOT_UNITS},
        boot_enabled=values.get("boot") == "enabled",
        replaced=_replaced(output),
        open=_open(head),
        edits=_edits(head),
    )


def _open(head: str) -> dict[str, str]:
    """Return paths that others may write to, those above first. Names that Rackwright does not give are skipped."""
    rows = [text.split(" ") for text in head.split("\n")]
    found = {row[2]: row[1] for row in rows if len(row) == 3 and row[0] == "open" and PLAIN_PATH.fullmatch(row[2])}
    return dict(sorted(found.items()))


def _edits(head: str) -> SeenEdits:
    rows = [text.split(" ") for text in head.split("\n")]
    found = {
        path: drop_in(path, hashlib.sha256(base64.b64decode(content)).hexdigest(), decode(content))
        for kind, path, content in (row for row in rows if len(row) == 3)
        if kind == "dropin"
    }
    return SeenEdits(found, {row[1]: row[2] for row in rows if row[0] == "elsewhere" and len(row) == 3})


def _replaced(output: str) -> dict[str, frozenset[str]]:
    rows = [row.split(" ") for row in output.splitlines() if row.startswith("replaced ")]
    return {name: frozenset(decode(by).split()) for _, name, by in rows}


def _endpoint(block: str) -> tuple[str, SeenEndpoint]:
    name, *lines = block.split("\n")
    files = dict(row.split(" ", 1) for row in lines if row.startswith(FILES))
    values = pairs("\n".join(row.removeprefix("value ") for row in lines if row.startswith("value ")))
    current, proven = _json(files.get("spec")), _json(files.get("proven_spec"))
    spec = readable(current)
    running, command_edited, limits_edited = _as_started(files, values)
    return name, SeenEndpoint(
        unit=decode(files["unit"]) if "unit" in files else None,
        unit_same="unit" in files and files["unit"] == files.get("current_unit"),
        active=values.get("ActiveState", "inactive"),
        sub=values.get("SubState", "dead"),
        result=values.get("Result", "success"),
        enabled=values.get("UnitFileState") == "enabled",
        needs_reload=values.get("NeedDaemonReload") == "yes",
        running=running,
        command_edited=command_edited,
        limits_edited=limits_edited,
        foreign_container=values.get("container") == "foreign",
        health=int(values["health"]) if values.get("health") else None,
        current=values.get("current") or None,
        proven=values.get("proven") or None,
        spec=spec,
        proven_spec=readable(proven) or (spec if values.get("proven") == values.get("current") else {}),
        proven_binding=binding_in(files.get("proven_binding")),
        files_whole=values.get("files") == "whole",
        format=next((found for found in map(format_of, (current, proven)) if found != FORMAT), FORMAT),
        binding=binding_in(files.get("binding")),
        admitted=values.get("admitted") != "no",
        last=last_switch(values),
        caches=values.get("caches"),
        held=values.get("held") == "yes",
        sick=values.get("sick") == "yes",
        askable=values.get("questions") == "yes",
    )


def _as_started(files: Mapping[str, str], values: Mapping[str, str]) -> tuple[Running | None, str, str]:
    """Return what runs, and how its command and its limits differ from its release's where that is the current one."""
    running = running_of(values.get("running", ""))
    if running is None or running.release != values.get("current") or values.get("files") != "whole":
        return running, "", ""
    release = exec_words(decode(files.get("current_unit", "")))
    started = decode(files.get("started", "")).split("\n")
    return running, command_edits(release, started), limit_edits(release, _json_text(values.get("limits", "")))


def binding_in(encoded: str | None) -> Binding | None:
    """Return a binding as a reading carries it; None when it is missing or was changed by hand."""
    return parse_binding(decode(encoded)) if encoded else None


def running_of(text: str) -> Running | None:
    """Return the labels of a running container, as `RELEASE SERVING BINDING`; None when Rackwright runs none."""
    words = text.split()
    return Running(*words) if len(words) == 3 else None


def last_switch(values: Mapping[str, str]) -> LastSwitch | None:
    """Return how the last switch ended, from the pairs `last_...` of a reading; None when there was none."""
    fields = [values.get(f"last_{key}", "") for key in ("release", "outcome", "time", "reason")]
    return LastSwitch(*fields) if fields[0] else None


def _json(encoded: str | None) -> dict[str, Any]:
    return _json_text(decode(encoded)) if encoded else {}


def _json_text(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
