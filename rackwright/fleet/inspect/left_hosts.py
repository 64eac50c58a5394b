"""Hosts that have left their inventory and may still serve, as the site's records know them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from rackwright.fleet.inspect.status.last_runs import MOST, begun, has_touched
from rackwright.fleet.inspect.status.rows import ago
from rackwright.runs.journal import read_record, records
from rackwright.runs.record import TEARDOWN, Record, record_of


def left_hosts(root: Path, inventory: Path, hosts: Collection[str], now: datetime) -> list[str]:
    """A sentence for each host that a run has worked on, that is no longer in the inventory, and was not torn down.

    One that another inventory's run has worked on since then is that inventory's. hosts: those that are in it.
    """
    found: dict[str, str] = {}
    for path in records(root)[: -MOST - 1 : -1]:
        record = record_of(path.stem, read_record(path))
        for host in record.states:
            if host not in hosts and host not in found and has_touched(record, host):
                found[host] = _told(record, host, inventory, ago(begun(path.stem, now), now))
    return [text for text in found.values() if text]


def _told(record: Record, host: str, inventory: Path, when: str) -> str:
    own = record.begin.get("inventory")
    if record.begin.get("purpose") == TEARDOWN or own is None or Path(own).resolve() != inventory.resolve():
        return ""
    what = record.begin.get("purpose") or "run"
    return (
        f"{host} is no longer in {inventory} and was not torn down: {what} {when}: {record.states[host]}; it may serve "
        f"still; next: put it back, then rackwright teardown {inventory} --limit {host}"
    )
