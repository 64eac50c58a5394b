"""The last run of each host, from the records that the site keeps."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

from rackwright.inspect.status.rows import ago
from rackwright.record.journal import SECOND, read_record, records
from rackwright.record.record import SILENT, Record, record_of
from rackwright.record.states import SKIPPED_HOSTS, RunState

MOST = 30
"""Records to look into, the newest first: a host that is in none of them has not been worked on for long."""

LEFT_ALONE = SKIPPED_HOSTS | {RunState.NOT_SWITCHED, RunState.BUSY, RunState.UNREACHABLE, RunState.UNSEEN}
"""States of a host that a run has let be."""


def has_worked_on(record: Record, host: str) -> bool:
    """Return True if a run has worked on a host: changed it, or found it as wanted."""
    return host in record.touched or record.states.get(host, RunState.UNSEEN) not in LEFT_ALONE


def last_runs(root: Path, hosts: Collection[str], now: datetime) -> dict[str, str]:
    """`rollout 5 min 3 s ago: switched`, by host: the last run that touched it; hosts without one are left out."""
    found: dict[str, str] = {}
    for path in records(root)[: -MOST - 1 : -1]:
        if len(found) == len(hosts):
            break
        run = record_of(path.stem, read_record(path))
        purpose = run.begin.get("purpose") or run.begin.get("what", "run")
        for host, state in run.states.items():
            if host in hosts and host not in found and has_worked_on(run, host):
                found[host] = f"{purpose} {ago(begun(path.stem, now), now)}: {_ended(purpose, state)}"
    return found


def _ended(purpose: str, state: str) -> str:
    """Return how a run ended on a host: a run that switches nothing has not failed before a switch."""
    return RunState.FAILED if purpose in SILENT and state == RunState.NOT_STAGED else state


def begun(run: str, now: datetime) -> datetime:
    """Return the time in the name of a record."""
    try:
        return datetime.strptime(run[:SECOND], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return now
