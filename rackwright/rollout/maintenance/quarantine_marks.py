"""Quarantine by the hosts' own marks, beside the site's list: every machine's rollouts skip a host with the mark."""

from __future__ import annotations

import getpass
import socket
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from rackwright.adapter.run.poll import poll
from rackwright.concerns.marks import quarantine_script, release_script
from rackwright.loading.host import InventoryHost
from rackwright.processes import module
from rackwright.record.quarantine import (
    List,
    Quarantined,
    SiteList,
    change_site_list,
    load_site_list,
)
from rackwright.rollout.maintenance.host_marks import HostMarks, marks_of

SECONDS = 90
"""Within which the hosts' marks are brought up to date after a run."""


def quarantined_hosts(root: Path, entries: Sequence[InventoryHost]) -> List:
    """Return the quarantined hosts, read over one login each, as `quarantined_by`."""
    return quarantined_by(marks_of(entries), root, entries)


def quarantined_by(on_hosts: Mapping[str, HostMarks], root: Path, entries: Sequence[InventoryHost]) -> List:
    """Return the quarantined hosts by their marks, and bring marks and list into line; the list alone for the others.

    Raises RackwrightError when the list cannot be read or written.
    """
    before = load_site_list(root)
    after = merged(before, on_hosts)
    writes = {name for name in after.hosts if name in on_hosts and on_hosts[name].quarantine is None}
    removals = {name for name in on_hosts if on_hosts[name].quarantine and name not in after.hosts}
    done = _carry_out(after, [entry for entry in entries if entry.name in writes | removals], removals)
    return change_site_list(root, lambda current: _noted(current, before, after, on_hosts, done, removals)).hosts


def merged(listed: SiteList, on_hosts: Mapping[str, HostMarks]) -> SiteList:
    """Return the list by what the hosts show. A mark that was taken away on another machine releases its host."""
    hosts = dict(listed.hosts)
    for name, one in on_hosts.items():
        if one.quarantine is None:
            if name in hosts and name in listed.marked and one.keeps_marks:
                del hosts[name]
        elif name not in hosts and one.quarantine.since > listed.released.get(name, ""):
            hosts[name] = Quarantined(one.quarantine.since, f"{one.quarantine.reason}, by {one.quarantine.who}")
    marked = {name for name in hosts if name in listed.marked or (name in on_hosts and on_hosts[name].quarantine)}
    released = {name: at for name, at in listed.released.items() if name not in hosts}
    return SiteList(hosts, frozenset(marked), released)


def _noted(
    current: SiteList,
    before: SiteList,
    after: SiteList,
    on_hosts: Mapping[str, HostMarks],
    done: Iterable[str],
    removals: Iterable[str],
) -> SiteList:
    """Return the file with what was read and done; another process may have changed it in the meantime."""
    fresh = after if current == before else merged(current, on_hosts)
    ready = set(done)
    at_rest = {name for name in on_hosts if on_hosts[name].quarantine is None} | (ready & set(removals))
    marked = fresh.marked | {name for name in ready if name in fresh.hosts}
    return SiteList(fresh.hosts, marked, {name: at for name, at in fresh.released.items() if name not in at_rest})


def _carry_out(wanted: SiteList, entries: Sequence[InventoryHost], removals: Iterable[str]) -> list[str]:
    """Write and remove marks; returns the hosts where that was done."""
    who, gone = f"{getpass.getuser()}@{socket.gethostname()}", set(removals)

    def script(entry: InventoryHost) -> str:
        return release_script() if entry.name in gone else quarantine_script(who, wanted.hosts[entry.name].why)

    return [name for name, reply in poll(entries, script).items() if not reply.trouble]


def follow_list(inventory: str, hosts: Sequence[str]) -> None:
    """Bring the marks of hosts into line after a run, by another process: connecting makes this one cooperative."""
    words = [*module("rackwright"), "quarantine", inventory]
    words += [argument for host in hosts for argument in ("--limit", host)]
    with suppress(OSError, subprocess.SubprocessError):
        # In a session of its own: Ctrl-C reaches the run's process alone.
        subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
            start_new_session=True,
        )
