"""The leases that a run holds, and the check that stands in front of every command that changes a host."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from pyinfra.api.state import State

from rackwright.concerns.lease import BREAKS, LEASE, TTL, parse_seen, span, whose
from rackwright.effects.run_context import part_of
from rackwright.hostside import host_script
from rackwright.paths import RUN

LOST = f"::rackwright-lease-lost:: {secrets.token_hex(8)}"
"""What a refused command prints. A script may print anything but this process's own word."""


@dataclass
class Hold:
    """A lease that this process has taken on a host."""

    id: str
    renewed: float = field(default_factory=time.monotonic)
    """When it was renewed last, by this machine's monotonic clock."""
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when it was given back, or lost: nothing more may be changed by it."""


@dataclass(frozen=True)
class HeldLeases:
    """The leases that a run has taken, by host name."""

    by_host: dict[str, Hold] = field(default_factory=dict)


def keep_hold(state: State, host: str, hold: Hold) -> None:
    """Note a lease that was taken on a host."""
    part_of(state, HeldLeases).by_host[host] = hold


def was_leased(state: State, host: str) -> bool:
    """Whether the run has taken a lease on a host, whatever became of it."""
    return host in part_of(state, HeldLeases).by_host


def hold_of(state: State, host: str) -> Hold | None:
    """The lease held on a host; None without one."""
    hold = part_of(state, HeldLeases).by_host.get(host)
    return None if hold is None or hold.ended.is_set() else hold


def twin_of(state: State, host: str, lease: str) -> str | None:
    """Return the name by which this run itself holds this lease: another name of the same machine."""
    held = part_of(state, HeldLeases).by_host
    return next((name for name, hold in held.items() if name != host and hold.id == lease), None)


def forget(state: State, host: str) -> None:
    """The lease of a host went with everything else there: nothing is to be renewed or given back."""
    if hold := hold_of(state, host):
        hold.ended.set()


def lease_checked(script: str, lease_id: str, writes: bool = True) -> str:
    """A script behind its check: refused when the lease is not this run's any more; otherwise it renews the lease.

    writes: the next writer waits until the script has ended.
    """
    check = host_script("lease_check", lease=LEASE, id=lease_id, ttl=TTL, lost=LOST)
    at_work = f"[ -d {RUN} ] && exec 8>>{LEASE}.writers && flock --shared --timeout 60 8\n" if writes else ""
    return f"{at_work}(\n{check}) || exit $?\n{script}"


def was_refused(errors: Iterable[str]) -> bool:
    """Whether what a command printed as errors says that the check refused it."""
    return LOST in errors


def why_lost(errors: Iterable[str], now: datetime) -> str:
    """The sentence for a refused command, from what it printed as errors."""
    seen = parse_seen(errors)
    if seen.lease is None:
        why = "the lease of this run is gone: the host was restarted, or another run has had it since"
    elif seen.lease.holder.purpose in BREAKS:
        holder = seen.lease.holder
        by = f"{holder.user}@{holder.machine} ({holder.purpose})"
        why = f"the lease of this run was taken away by {by}, {span(seen.age)} ago"
    else:
        why = f"the lease of this run was taken over by {whose(seen, now)}"
    return f"{why}; nothing more was changed here; next: run the same command again"
