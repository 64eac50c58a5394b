"""Fleets as `rackwright top` has read them, of any size."""

from __future__ import annotations

from collections.abc import Sequence

from rackwright.inspect.status.rows import StatusRow
from rackwright.inspect.top.fleet import HostNow
from rackwright.inspect.top.host_sample import EngineNow, HostSample

NOW = 1000.0
"""This machine's monotonic clock."""
RELEASE = "3f2a9c1d77aa"


def status_row(host: str, health: str = "serving", **fields: object) -> StatusRow:
    """Return a row of status of an endpoint that serves what the settings ask for."""
    values = {"release": RELEASE, "proven": True, "wanted": True, "gpus": 8, "moved": (), **fields}
    return StatusRow(host, "llm", health=health, **values)  # type: ignore[arg-type]


def host_now(name: str, looks: Sequence[HostSample] = (), rows: Sequence[StatusRow] | None = None) -> HostNow:
    """Return a host with a status and these looks; by default two, 2 s apart, in which it made 50 tokens a second."""
    host = HostNow(name)
    for look in looks or busy_looks():
        host.add(look, [status_row(name)] if rows is None else rows, NOW)
    return host


def busy_looks(**fields: object) -> list[HostSample]:
    """Return two looks at an engine with three requests, one of which waits."""
    engines = [{"llm": EngineNow(200, tokens, 2, 1)} for tokens in (1000.0, 1100.0)]
    return [HostSample(500.0 + 2 * n, one, **fields) for n, one in enumerate(engines)]  # type: ignore[arg-type]


def fleet_of(count: int) -> list[HostNow]:
    """Return a fleet of which most hosts serve, and some are what an operator looks for."""
    hosts = [host_now(f"gpu{number:03}") for number in range(1, count + 1)]
    hosts[1].lose("cannot be reached: no route to host")
    signs = {"state": "hung", "signs": "no step for 130 s, the probe is not answered", "would": "restart"}
    hosts[2] = host_now("gpu003", busy_looks(watch={"llm": signs}))
    hosts[3] = host_now("gpu004", rows=[status_row("gpu004", "drained", connections=0)])
    return hosts
