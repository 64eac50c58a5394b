"""Hosts that have left their inventory and may still serve, as the site's records know them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from rackwright.inspect.status.last_runs import MOST, begun, has_worked_on
from rackwright.inspect.status.rows import ago
from rackwright.record.journal import read_record, records
from rackwright.record.record import TEARDOWN, Record, record_of
from rackwright.record.states import RunState


def left_hosts(root: Path, inventory: Path, hosts: Mapping[str, str], now: datetime) -> list[str]:
    """Return a sentence for each host that a run has worked on, that is no longer in the inventory or torn down.

    One that another inventory's run has worked on since then is that inventory's, and one whose address is in the
    inventory has another name now. hosts: those that are in it, with their addresses.
    """
    found: dict[str, str] = {}
    for path in records(root)[: -MOST - 1 : -1]:
        record = record_of(path.stem, read_record(path))
        for host in record.states:
            if host not in hosts and host not in found and has_worked_on(record, host):
                renamed = record.begin.get("addresses", {}).get(host) in set(hosts.values())
                found[host] = "" if renamed else _sentence(record, host, inventory, ago(begun(path.stem, now), now))
    return [text for text in found.values() if text]


def _sentence(record: Record, host: str, inventory: Path, when: str) -> str:
    recorded = record.begin.get("inventory")
    if _is_gone(record, host) or recorded is None or Path(recorded).resolve() != inventory.resolve():
        return ""
    what = record.begin.get("purpose") or "run"
    return (
        f"{host} is no longer in {inventory} and was not torn down: {what} {when}: {record.states[host]}; it may serve "
        f"still; next: put it back, then rackwright teardown {inventory} --limit {host}"
    )


def _is_gone(record: Record, host: str) -> bool:
    """Return True if all of Rackwright left the host with this run: not only what other steps had left there."""
    whole = record.begin.get("purpose") == TEARDOWN and not record.begin.get("steps")
    return whole and record.states.get(host) is RunState.DONE
