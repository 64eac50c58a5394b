"""Reads the hosts of a run once more and puts its bundle beside the run's record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rackwright.adapter.run.options import given
from rackwright.adapter.run.session import hosts_named
from rackwright.hardware.bundle import BundledHost, bundle
from rackwright.hardware.page import page
from rackwright.inspect.read_hosts import Surveyed, survey
from rackwright.masks import MASK
from rackwright.messages import RackwrightError
from rackwright.record.journal import Event, folder_of, read_record, records
from rackwright.record.view.report.writing import write_privately
from rackwright.record.view.timeline import Timeline
from rackwright.record.view.timeline_events import timeline_of


def newest_with_rows(root: Path) -> Path:
    """Return the record of the newest run that asked an endpoint anything. Raises RackwrightError without one."""
    for path in reversed(records(root)):
        if any(event["kind"] == "row" for event in read_record(path)):
            return path
    raise RackwrightError(
        f"{folder_of(root)} has no run that asked an endpoint anything; next: rackwright rollout INVENTORY",
        code="RW0824",
    )


def write_bundle(record: Path, out: Path | None = None) -> Path:
    """Write the bundle of a record and return where it is; its hosts are only looked at. Raises RackwrightError.

    out: the file to write; by default the record's name with `.hardware.md`.
    """
    events = read_record(record)
    timeline, begin = timeline_of(events), _begin(events)
    with given(data_of(begin)):
        text = page(bundle(timeline, members(timeline, begin, record.stem)))
    target = out or record.with_suffix(".hardware.md")
    write_privately(target, text)
    return target


def data_of(begin: Event) -> dict[str, Any]:
    """Return the run's `--data`, by which its gate was asked; secrets, which a record masks, are left out."""
    return {key: value for key, value in begin.get("data", {}).items() if MASK not in json.dumps(value)}


def _begin(events: Sequence[Event]) -> Event:
    return next((event for event in events if event["kind"] == "begin"), {})


def members(timeline: Timeline, begin: dict[str, Any], run: str) -> list[BundledHost]:
    """Return the hosts of a run that the gate asked and its inventory still has, each with a fresh reading."""
    inventory, hosts = str(begin.get("inventory", "")), [host.name for host in timeline.hosts.values() if host.rows]
    if not hosts:
        raise RackwrightError(f"run {run} asked no endpoint anything; next: rackwright runs", code="RW0825")
    groups = {entry.name: entry.groups for entry in hosts_named(inventory, hosts) if entry.name in hosts}
    if not groups:
        raise RackwrightError(
            f"{inventory} has none of the hosts of run {run}; next: rackwright runs {run}", code="RW0826"
        )
    return [_member(timeline, found, groups[found.name]) for found in survey(inventory, list(groups))]


def _member(timeline: Timeline, found: Surveyed, groups: Sequence[str]) -> BundledHost:
    return BundledHost(timeline.hosts[found.name], found.settings, groups, found.reading)
