"""A host keeps its slice of the run that holds its lease, so that the run can be resumed without its record."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rackwright.adapter.host import Host
from rackwright.adapter.run_context import part_of
from rackwright.concerns.lease.own_leases import hold_of
from rackwright.loading.files import site_root
from rackwright.paths import SLICE
from rackwright.plan.change import WriteFile
from rackwright.record.journal import current_record, read_record
from rackwright.record.on_hosts.slices import slice_of
from rackwright.remote.commands import run_simple
from rackwright.remote.errors import StepFailedError


@dataclass(frozen=True)
class KeptSlices:
    """The slices that the hosts of this run already keep."""

    by_host: dict[str, str] = field(default_factory=dict)


def keep_slice(host: Host) -> None:
    """Store the record's current content about a host on it. The run does not fail without a lease, or on an error."""
    if hold_of(host) is None:
        return
    text, slices = _slice(host.name), part_of(host.state, KeptSlices).by_host
    if text is None or text == slices.get(host.name):
        return
    with suppress(StepFailedError):
        run_simple(host, WriteFile(SLICE, text, mode="0600"))
        slices[host.name] = text


def _slice(host: str) -> str | None:
    path = current_record()
    if path is None:
        return None
    try:
        events = read_record(path)
    except OSError:
        return None
    inventory = next((event["inventory"] for event in events if event["kind"] == "begin"), "")
    return slice_of(path.stem, site_root(Path(inventory)), events, host)
