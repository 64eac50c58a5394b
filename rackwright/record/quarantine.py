"""The site's list of hosts with a fault of their own: rollouts skip them, and say so, until they are well again.

Each host has a mark of it, which every machine sees (rollout/maintenance/quarantine_marks.py). `quarantine.json`,
beside the records, counts for hosts that cannot be reached, and names the run that found the fault. A host gets on
it by a host's fault in its switch (DECISIONS 31), or by hand; it leaves it by a run that switches it well, or by hand.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rackwright.messages import RackwrightError
from rackwright.one_writer import one_writer
from rackwright.record.cause import Cause
from rackwright.record.fault import judged
from rackwright.record.journal import folder_of, make_folder
from rackwright.record.record import Record
from rackwright.record.states import RunState

FILE = "quarantine.json"
CURED_BY_BEING_THERE = Cause.CONNECTION
"""Kinds that are over when a later run finds the host as wanted; any other must be disproved by a switch."""


@dataclass(frozen=True)
class Quarantined:
    """The reason for a host's place on the list, since when (UTC), and by which run; by hand without a run."""

    since: str
    why: str
    run: str | None = None
    cause: str | None = None
    """The kind of fault, one of Cause; None by hand."""

    def __str__(self) -> str:
        return f"quarantined since {self.since} ({self.why})"


def remarks(root: Path, hosts: Sequence[str]) -> list[str]:
    """Return what a plain run says of its quarantined hosts. Raises RackwrightError."""
    listed = load_quarantine(root)
    return [f"{host} is {listed[host]}; this run includes it anyway" for host in hosts if host in listed]


List = dict[str, Quarantined]


@dataclass(frozen=True)
class SiteList:
    """The file: the list, and how far the hosts' marks follow it."""

    hosts: List
    marked: frozenset[str] = frozenset()
    """Hosts on the list whose mark has been written or seen."""
    released: Mapping[str, str] = field(default_factory=dict)
    """Hosts that are no longer on the list and may still have a mark: when they left it (UTC)."""

    def with_hosts(self, hosts: List, now: str) -> SiteList:
        """Return the file with another list: a host that leaves it is to lose its mark, a new one is to get one."""
        gone = {host: now for host in self.hosts if host not in hosts}
        released = {host: at for host, at in {**self.released, **gone}.items() if host not in hosts}
        return SiteList(hosts, frozenset(host for host in self.marked if host in hosts), released)


def load_quarantine(root: Path) -> List:
    """Return the list of a site. Raises RackwrightError when the file is not what this module writes."""
    return load_site_list(root).hosts


def load_site_list(root: Path) -> SiteList:
    """Return the list of a site with its hosts' marks. Raises RackwrightError for another file."""
    path = folder_of(root) / FILE
    try:
        values = json.loads(path.read_text())
        hosts = {host: Quarantined(**entry) for host, entry in values["hosts"].items()}
        return SiteList(hosts, frozenset(values.get("marked", ())), dict(values.get("released", {})))
    except FileNotFoundError:
        return SiteList({})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RackwrightError(
            f"{path} cannot be read as a quarantine list: {error}; next: fix it, or move it away", code="RW0810"
        ) from error


def change_quarantine(root: Path, change: Callable[[List], List]) -> List:
    """Change the list, one process at a time; returns the new one. Raises RackwrightError."""
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
    return change_site_list(root, lambda before: before.with_hosts(change(before.hosts), now)).hosts


def change_site_list(root: Path, change: Callable[[SiteList], SiteList]) -> SiteList:
    """Change the file, one process at a time; returns the new content. Raises RackwrightError."""
    folder = folder_of(root)
    try:
        make_folder(folder)
        with one_writer(folder):
            before = load_site_list(root)
            after = change(before)
            if after != before:
                _write(folder / FILE, after)
    except OSError as error:
        raise RackwrightError(f"{folder / FILE} cannot be written: {error}", code="RW0811") from error
    return after


def _write(path: Path, content: SiteList) -> None:
    hosts = {host: asdict(entry) for host, entry in content.hosts.items()}
    values = {"version": 1, "hosts": hosts, "marked": sorted(content.marked), "released": dict(content.released)}
    new = path.with_suffix(".new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(f"{json.dumps(values, indent=1)}\n")
    new.replace(path)


def after_run(before: List, record: Record, now: str) -> List:
    """Return the list after a run: hosts with a fault of their own come on it, hosts that are well again leave it."""
    failed = judged(failure for failures in record.failures.values() for failure in failures).blamed
    well = {host for host, entry in before.items() if host not in failed and _is_cured(record, host, entry)}
    new = {
        host: Quarantined(now, reason.check, record.id, reason.cause)
        for host, reason in failed.items()
        if host not in before
    }
    return {host: entry for host, entry in before.items() if host not in well} | new


def _is_cured(record: Record, host: str, entry: Quarantined) -> bool:
    state = record.states.get(host)
    return state == RunState.SWITCHED or (state == RunState.UNCHANGED and entry.cause == CURED_BY_BEING_THERE)


def update_quarantine(root: Path, record: Record) -> list[str]:
    """Bring the list up to date with a run that has ended; returns what to say of it. Raises RackwrightError."""
    before = load_quarantine(root)
    if after_run(before, record, "") == before:
        return []
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
    after = change_quarantine(root, lambda current: after_run(current, record, now))
    additions = [f"{host} is quarantined ({after[host].why}): rollouts skip it" for host in after.keys() - before]
    return sorted(additions) + sorted(
        f"{host} is well again, and no longer quarantined" for host in before.keys() - after
    )
