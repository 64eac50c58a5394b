"""The state of each endpoint of each host as a row. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rackwright.concern import HostReading
from rackwright.concerns.endpoint import ENDPOINT, SeenEndpoint
from rackwright.concerns.gpus import GPUS
from rackwright.concerns.release import gpu_uuids
from rackwright.fleet.drifting import HostDrift
from rackwright.hostside import host_script
from rackwright.reading import Section, pairs
from rackwright.settings.model import EndpointSettings, HostSettings

SECTION = "status"
UNKNOWN = "?"


@dataclass(frozen=True)
class StatusRow:
    """One endpoint of one host. None: not known, or there is none."""

    host: str
    endpoint: str
    release: str | None
    proven: bool
    """Whether that release has answered."""
    up_seconds: int | None
    health: str
    """`serving`, `loading`, `stopped`, `failed`, `absent`, `sick`: runs, /health says so; or why it is not known."""
    gpus: int | None
    gpu_model: str
    connections: int | None
    drift: bool | None

    @property
    def serving(self) -> bool:
        """True when the endpoint answers now."""
        return self.health == "serving"


def sections(settings: HostSettings) -> Mapping[str, str]:
    """What status reads besides the concerns."""
    ports = "\n".join(f"{name} {own.port:04X}" for name, own in settings.all_endpoints.items())
    return {SECTION: host_script("status_read", endpoints=ports)}


def rows_of(
    host: str, settings: HostSettings, reading: HostReading, more: Section, drift: HostDrift
) -> list[StatusRow]:
    """A row for each endpoint that is wanted."""
    values = pairs(more.output)
    moved = None if drift.state != "read" else drift.drifted
    return [_row(host, name, own, reading, values, moved) for name, own in settings.all_endpoints.items()]


def _row(
    host: str, name: str, own: EndpointSettings, reading: HostReading, values: Mapping[str, str], moved: bool | None
) -> StatusRow:
    seen = reading[ENDPOINT].endpoints.get(name, SeenEndpoint())
    chosen = set(gpu_uuids(own, reading))
    models = {gpu.name for gpu in reading[GPUS].gpus if gpu.uuid in chosen}
    up = _up(values, name) if seen.active == "active" else None
    connections = values.get(f"connections.{name}", "")
    return StatusRow(
        host=host,
        endpoint=name,
        release=seen.running_hash or seen.current,
        proven=seen.proven is not None and seen.proven == (seen.running_hash or seen.current),
        up_seconds=up,
        health=_health(seen),
        gpus=len(chosen),
        gpu_model=", ".join(sorted(models)),
        connections=int(connections) if connections.isdigit() else None,
        drift=moved,
    )


def _up(values: Mapping[str, str], name: str) -> int | None:
    since, uptime = values.get(f"since.{name}", ""), values.get("uptime", "")
    return int(uptime) - int(since) // 1_000_000 if since.isdigit() and uptime.isdigit() and int(since) else None


def _health(seen: SeenEndpoint) -> str:
    if seen.current is None:
        return "absent"
    if seen.loading:
        return "loading"
    if seen.active == "failed":
        return "failed"
    if seen.active != "active":
        return "stopped"
    return "serving" if seen.health == 200 else "sick"


def unknown_row(host: str, why: str) -> StatusRow:
    """The row of a host that cannot be read."""
    return StatusRow(host, UNKNOWN, None, False, None, why, None, "", None, None)


def values_of(rows: Sequence[StatusRow]) -> dict[str, Any]:
    """The same for `--json`; docs/how-to/look-at-a-fleet.md describes it."""
    return {"version": 1, "endpoints": [asdict(row) for row in rows]}
