"""The state of each endpoint of each host as a row. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.endpoint.switch.events import CUT
from rackwright.concerns.endpoint.why_switch import is_deferred
from rackwright.concerns.gateway.answer import common_address
from rackwright.concerns.lease import span, whose
from rackwright.concerns.marks import QUARANTINE
from rackwright.inspect.status.reading import (
    Asked,
    EndpointStatus,
    HostStatus,
    drift_of,
    is_wanted,
    own_gpus,
    wanted_aim,
)
from rackwright.paths import CERTIFICATE_UNIT
from rackwright.settings.gateway_certificate import SOON

UNKNOWN = "?"
BOOTING = 120
"""Seconds after a boot in which endpoints and firewall may still be starting."""
GATEWAY = "gateway"
"""Name of the gateway's row."""
GATEWAY_STATES = {"200": "serving", "503": "no host"}
"""State of a gateway by its answer: with 503 no model behind it has a host."""


@dataclass(frozen=True)
class StatusRow:
    """One endpoint of one host. None: unknown, or missing."""

    host: str
    endpoint: str
    release: str | None = None
    proven: bool = False
    """True if that release has answered."""
    wanted: bool | None = None
    """True if it serves what the settings ask for."""
    adopts: str | None = None
    """The release that is adopted at the next switch: it differs in its unit or its helper scripts alone."""
    up_seconds: int | None = None
    health: str = ""
    """`serving`, `loading`, `stopped`, `failed`, `absent`, `held back`: never proven, so it was not started at boot;
    `sick`: runs, /health says so; `hung`, `dead`: as the host's own look has found; or why it is not known."""
    gpus: int | None = None
    """Its own GPUs that the driver has; of an endpoint that is absent, those that it is to have."""
    gpu_model: str = ""
    connections: int | None = None
    moved: tuple[str, ...] | None = None
    """Differences from the last deploy, as sentences."""
    lock: str = ""
    """The run that changes the host now, and its purpose."""
    last_run: str = ""
    """The site's last recorded run with this host, and how it went."""
    note: str = ""
    """The end of a switch that was cut, or the host's own repairs."""
    drained: str = ""
    """Since when, by whom and why its host is drained."""
    paused: str = ""
    """The pause of its host's watch: until when, by whom and why."""
    watch: str = ""
    """Signs by which its host has found that it hangs or is dead, and what the watch would have done."""
    marks: tuple[str, ...] = ()
    """Marks that take it out of service, each with its word, its writer, since when and why."""
    ended_marks: tuple[str, ...] = ()
    """Those of runs that have ended."""
    direct: str = ""
    """The treatment of direct clients by its ports, where they are, or are to be, closed to all but the gateways."""
    address: str = ""
    """The gateways' common address, where this gateway has it."""
    quarantine: str = ""
    """The reason for which rollouts leave the host out."""
    certificate_end: str = ""
    """The end of a gateway's certificate, in UTC."""
    booted: str = ""
    """The words for a host that has just booted, where it does not serve yet."""
    head: str = ""
    """The host that answers for all of them, where several hosts serve the endpoint together."""

    @property
    def serving(self) -> bool:
        """True when the endpoint answers now."""
        return self.health == "serving"

    @property
    def drift(self) -> bool | None:
        """True if something moved on its own."""
        return None if self.moved is None else bool(self.moved)


def rows_of(host: str, wanted: Asked, host_status: HostStatus, now: datetime) -> list[StatusRow]:
    """Return a row for each endpoint that is wanted or present. `now`: this machine's time with its zone."""
    lock = ""
    if host_status.lease.live:
        lock = whose(host_status.lease, now)
    names = dict.fromkeys((*wanted.endpoints, *host_status.endpoints))
    found = [_row(host, name, wanted, host_status, lock) for name in names]
    return [*found, *([_gateway_row(host, wanted, host_status, lock, now)] if host_status.gateway else [])]


def _booted(endpoint: EndpointStatus, uptime: int) -> str:
    """Return what explains an endpoint that does not serve right after a boot, and rules that are not there yet."""
    is_starting = uptime < BOOTING and _health(endpoint) != "serving"
    return f"it booted {uptime} s ago: its endpoints and its firewall may still be starting" if is_starting else ""


def _gateway_row(host: str, wanted: Asked, host_status: HostStatus, lock: str, now: datetime) -> StatusRow:
    """Return the row of a host's gateway; no endpoint can have its name."""
    state, _, code = host_status.gateway.partition(" ")
    health = GATEWAY_STATES.get(code, "no answer") if state == "active" else "stopped"
    drained, paused = str(host_status.drained or ""), str(host_status.paused or "")
    address = common_address(wanted.settings) if host_status.has_address else ""
    found = StatusRow(host, GATEWAY, health=health, gpus=0, lock=lock, drained=drained, paused=paused, address=address)
    if host_status.certificate_end is None:
        return found
    end = datetime.fromtimestamp(host_status.certificate_end, UTC)
    return replace(found, certificate_end=f"{end:%F %T}Z", note=_certificate_note(end, now))


def _certificate_note(end: datetime, now: datetime) -> str:
    """Return that a gateway's certificate ends soon; empty for one that does not."""
    if end - now >= SOON:
        return ""
    verb = "has expired" if end <= now else "ends"
    return f"its certificate {verb} on {end:%F}; next, on it: journalctl -u {CERTIFICATE_UNIT}"


def _row(host: str, name: str, wanted: Asked, host_status: HostStatus, lock: str) -> StatusRow:
    endpoint = host_status.endpoints.get(name, EndpointStatus(SeenEndpoint()))
    observed = endpoint.observed
    release = observed.running_hash or observed.current
    aim = wanted_aim(name, wanted, endpoint, host_status) if release and name in wanted.endpoints else None
    gpus = own_gpus(observed, wanted.endpoints.get(name), host_status)
    return StatusRow(
        host=host,
        endpoint=name,
        release=release,
        proven=observed.proven is not None and observed.proven == release,
        wanted=is_wanted(aim, observed) if aim else None if name in wanted.endpoints else False,
        adopts=aim.release.hash if aim and is_deferred(aim, observed) else None,
        up_seconds=max(0, host_status.uptime - endpoint.active_since) if endpoint.active_since else None,
        health="drained" if host_status.drained and _rests(observed) else _health(endpoint),
        booted=_booted(endpoint, host_status.uptime),
        gpus=len(gpus),
        gpu_model=", ".join(sorted(set(gpus) - {UNKNOWN}) or sorted(set(host_status.gpus))),
        connections=endpoint.connections,
        moved=tuple(drift_of(endpoint, host_status, wanted.settings.releases.drop_ins)) if release else None,
        lock=lock,
        drained=str(host_status.drained or ""),
        paused=str(host_status.paused or ""),
        watch=str(endpoint.watch),
        marks=tuple(str(mark) for mark in host_status.marks if mark.endpoint == name),
        ended_marks=tuple(str(mark) for mark in host_status.ended_marks if mark.endpoint == name),
        direct=_direct(wanted, host_status),
        quarantine=next(
            (f"since {m.since} UTC by {m.who}, {m.reason}" for m in host_status.marks if m.name == QUARANTINE), ""
        ),
        note=_note(observed) or _died(endpoint) or _repaired(host_status),
        head=group.head.host if (group := wanted.settings.group) and group.endpoint == name else "",
    )


def _direct(wanted: Asked, host_status: HostStatus) -> str:
    if host_status.direct:
        return f"open to direct clients for another {-(-host_status.direct // 60)} min"
    if host_status.direct == 0:
        return "closed to all but the gateways"
    return "open to direct clients until a deploy closes them" if wanted.settings.direct_is_closed else ""


def _rests(endpoint: SeenEndpoint) -> bool:
    return endpoint.active in ("inactive", "failed")


def _health(status: EndpointStatus) -> str:
    endpoint = status.observed
    if endpoint.held:
        return "held back"
    if endpoint.current is None:
        return "stopped" if _was_cut(endpoint) else "absent"
    if endpoint.loading:
        return "loading"
    if endpoint.active == "failed":
        return "failed"
    if endpoint.active != "active":
        return "stopped"
    if status.watch.is_down:
        return status.watch.state
    return "serving" if endpoint.health == 200 else "sick"


def _was_cut(endpoint: SeenEndpoint) -> bool:
    return endpoint.last is not None and endpoint.last.outcome == CUT


def _note(endpoint: SeenEndpoint) -> str:
    """Return why it does not serve what was tried last, when the switch that tried it was cut."""
    if endpoint.held:
        return (
            "what it would start was never proven, and could not be put back at boot; next: pyinfra INVENTORY deploy.py"
        )
    if endpoint.last is None or not _was_cut(endpoint):
        return ""
    now = (
        f"release {endpoint.current} was put back"
        if endpoint.current
        else "nothing was ever proven here, so it stays stopped"
    )
    return (
        f"the switch to release {endpoint.last.release} was cut at {endpoint.last.time}: {endpoint.last.reason}; {now}"
    )


def _died(endpoint: EndpointStatus) -> str:
    return f"its engine died: {endpoint.died}; next: rackwright logs INVENTORY" if endpoint.died else ""


def _repaired(host_status: HostStatus) -> str:
    if not host_status.repairs:
        return ""
    times, _, why = host_status.repairs.partition(" ")
    often = "once" if times == "1" else f"{times} times"
    return f"the host has put its firewall rules back {often} within the last hour, the last time because {why}"


def unknown_row(host: str, wanted: Asked, why: str) -> StatusRow:
    """Return the row of a host that cannot be read."""
    name = UNKNOWN if wanted.endpoints or not wanted.settings.is_gateway else GATEWAY
    return StatusRow(host, name, health=why)


@dataclass(frozen=True)
class ReleaseGroup:
    """Hosts that have the same release of an endpoint."""

    endpoint: str
    release: str
    hosts: tuple[str, ...]


def grouped(rows: Sequence[StatusRow], adopted: bool = False) -> list[ReleaseGroup]:
    """Return hosts by the release of an endpoint that they have, or by the one that they adopt at their next switch."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        release = row.adopts if adopted else row.release
        if release:
            found.setdefault((row.endpoint, release), []).append(row.host)
    return [ReleaseGroup(*key, tuple(hosts)) for key, hosts in found.items()]


def states_of(rows: Sequence[StatusRow]) -> list[str]:
    """Return what each endpoint does; hosts that serve one together count once, as the first that does not serve."""
    found: dict[tuple[str, str], list[StatusRow]] = {}
    for row in rows:
        if row.endpoint != GATEWAY:
            found.setdefault((row.head or row.host, row.endpoint), []).append(row)
    return [_state(next((row for row in members if not row.serving), members[0])) for members in found.values()]


def _state(row: StatusRow) -> str:
    return row.health if row.endpoint != UNKNOWN else "not known"


def values_of(rows: Sequence[StatusRow]) -> dict[str, Any]:
    """Return the same for `--json`; docs/how-to/look-at-a-fleet.md describes it."""
    endpoints = [{**asdict(row), "drift": row.drift} for row in rows]
    return {"version": 1, "endpoints": endpoints, "releases": [asdict(one) for one in grouped(rows)]}


def ago(then: datetime, now: datetime) -> str:
    """Return how long ago something was, for people."""
    return f"{span(max(0, int((now - then).total_seconds())))} ago"
