"""The host's endpoints as they are: unit, container, health, pointers, and how the last switch ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rackwright.hostside import host_script
from rackwright.paths import BOOT_UNIT, STATE, TARGET, UNITS
from rackwright.reading import decode, files, pairs
from rackwright.settings.model import HostSettings
from rackwright.spec import local_url
from rackwright.switchnews import LastSwitch

_SPEC_KEYS = frozenset({"hash", "image", "address", "port", "mounts", "gpus"})
BOOT_UNITS = (TARGET, BOOT_UNIT)


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
    foreign_container: bool = False
    """True when a container of the endpoint's name is there that is not ours."""
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
    name, *lines = block.split("\n")
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
        foreign_container=values.get("container") == "foreign",
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
