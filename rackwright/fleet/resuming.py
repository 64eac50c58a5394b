"""What is left of a run that was cut, or that left hosts aside: forward, or further back. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rackwright.errors import RackwrightError
from rackwright.fleet.record import (
    AFTERWARDS,
    BACKWARD,
    BY_HAND,
    FORWARD,
    QUARANTINED,
    SWITCHED,
    SWITCHING,
    TEARDOWN,
    WELL,
    Record,
    left_hosts,
)
from rackwright.fleet.waves import Fault
from rackwright.settings.secret import MASK

WENT_BACK = 3
"""Exit status of a run that took its change back."""
Releases = dict[str, dict[str, str]]


@dataclass(frozen=True)
class Rest:
    """What a resume does: `kind` is FORWARD, BACKWARD, BY_HAND, TEARDOWN, or empty for a plain deploy."""

    kind: str
    hosts: tuple[str, ...]
    releases: Releases = field(default_factory=dict)
    """Going back: release by endpoint by host. Forward: what hosts ran before that have the new release already."""
    first: tuple[str, ...] = ()
    """Hosts that were in the middle of their switch: before anybody else they must be seen to serve."""
    last: tuple[str, ...] = ()
    """Hosts with a fault of their own: they must not stand in the way of the others."""


def rest_of(record: Record) -> Rest:
    """What is left of a run. Raises RackwrightError when nothing is, or when going on with it would be wrong."""
    _refuse_unfit(record)
    purpose = record.begin["purpose"]
    if purpose == BY_HAND:
        rest = _by_hand(record)
    elif purpose == TEARDOWN:
        rest = Rest(TEARDOWN, tuple(left_hosts(record)))
    elif purpose == FORWARD:
        rest = _back(record) if goes_back(record) else _forward(record)
    else:
        rest = Rest("", tuple(left_hosts(record)), first=_in(record, SWITCHING))
    if not rest.hosts:
        raise RackwrightError(f"nothing is left of run {record.id}: {record.counts()}")
    return rest


def _refuse_unfit(record: Record) -> None:
    if "purpose" not in record.begin:
        raise RackwrightError(f"the record of run {record.id} does not say what was asked for: start it anew")
    if record.begin["purpose"] not in (FORWARD, BY_HAND, TEARDOWN) and not record.begin.get("plain"):
        what = record.begin.get("what", record.begin["purpose"])
        raise RackwrightError(f"run {record.id} ({what}) is not one that can be gone on with; next: start it anew")
    if record.lives:
        pids = ", ".join(str(process["pid"]) for process in record.processes)
        raise RackwrightError(f"run {record.id} is still under way (process {pids}); next: wait, or stop it first")
    if record.resumed_by:
        raise RackwrightError(
            f"run {record.id} went on as {record.resumed_by} already; next: rackwright resume {record.resumed_by}"
        )
    masked = [key for key, value in record.begin.get("data", {}).items() if MASK in json.dumps(value)]
    if masked:
        raise RackwrightError(
            f"run {record.id} had --data {', '.join(masked)} with a secret, which no record keeps; next: "
            f"the same command again, with --only left@{record.id}"
        )


def goes_back(record: Record) -> bool:
    """True when the run found the release at fault, and so took its hosts back."""
    return (
        BACKWARD in record.phases
        or "back" in record.begin
        or bool(record.failures and record.failures[-1]["fault"] == Fault.RELEASE.value)
    )


def _forward(record: Record) -> Rest:
    hosts = left_hosts(record)
    blamed = [failure["host"] for failure in record.failures if failure["fault"] == Fault.HOST.value]
    last = {*blamed, *_in(record, QUARANTINED)}
    return Rest(
        FORWARD,
        tuple(hosts),
        {**_earlier(record), **_before(record, SWITCHED)},
        first=tuple(host for host in _in(record, SWITCHING) if host not in last),
        last=tuple(host for host in hosts if host in last),
    )


def _back(record: Record) -> Rest:
    if record.end is not None and record.end["status"] == WENT_BACK:
        raise RackwrightError(
            f"run {record.id} found its release at fault and took it back, so nothing is left to go on with; next: "
            f"mend the settings, then rackwright rollout {record.begin['inventory']}"
        )
    wanted = record.begin.get("back") or {**_earlier(record), **_before(record, SWITCHED, AFTERWARDS, SWITCHING)}
    there = record.phases.get(BACKWARD, {})
    left: Releases = {host: dict(releases) for host, releases in wanted.items() if there.get(host) not in WELL}
    return Rest(BACKWARD, tuple(left), left)


def _by_hand(record: Record) -> Rest:
    """Hosts in the middle of going back get the release they were going to: asked anew, `last` is one further back."""
    hosts = left_hosts(record)
    asked = record.begin.get("back", {})
    others = {"*": record.begin.get("to", "last")}
    found = {host: dict(record.targets.get(host) or asked.get(host) or others) for host in hosts}
    return Rest(BY_HAND, tuple(hosts), found)


def _before(record: Record, *states: str) -> Releases:
    forward: Mapping[str, Any] = record.phases.get(FORWARD, {})
    return {
        host: dict(record.before[host])
        for host, state in forward.items()
        if state in states and record.before.get(host)
    }


def _earlier(record: Record) -> Releases:
    return {host: dict(releases) for host, releases in record.begin.get("earlier", {}).items()}


def _in(record: Record, state: str) -> tuple[str, ...]:
    return tuple(host for host, found in record.states.items() if found == state)
