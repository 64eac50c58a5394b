"""The leases that a run holds, and the check before every command that changes a host."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from rackwright.adapter.concurrency import new_event
from rackwright.adapter.host import Host
from rackwright.adapter.run_context import part_of
from rackwright.concerns.lease import BREAKS, LEASE, TTL, parse_seen, span, whose
from rackwright.hostside import host_script
from rackwright.paths import RUN
from rackwright.remote.commands import Writers
from rackwright.remote.errors import LeaseLostError

if TYPE_CHECKING:
    from rackwright.adapter.concurrency import Event

LOST = f"::rackwright-lease-lost:: {secrets.token_hex(8)}"
"""The output of a refused command. A script may print anything else: the text is random in each process."""


@dataclass
class Hold:
    """A lease that this process has taken on a host."""

    id: str
    renewed: float = field(default_factory=time.monotonic)
    """The time of its last renewal, by this machine's monotonic clock."""
    outside: bool = False
    """True on a host that the run was not begun for."""
    ended: Event = field(default_factory=new_event)
    """Set when it was released or lost: no further changes may use it."""

    @property
    def is_over(self) -> bool:
        """True when it was released or lost."""
        return self.ended.is_set()

    def checked(self, script: str, writes: bool) -> str:
        """Return a script behind the lease's check."""
        return lease_checked(script, self.id, writes)

    def heard(self, ok: bool, errors: Sequence[str]) -> None:
        """Note that a checked script has renewed the lease. Raises LeaseLostError when the check refused it."""
        if not ok and was_refused(errors):
            self.ended.set()
            raise LeaseLostError(why_lost(errors, datetime.now().astimezone()))
        self.renewed = time.monotonic()


@dataclass(frozen=True)
class HeldLeases:
    """The leases that a run has taken, by host name."""

    by_host: dict[str, Hold] = field(default_factory=dict)


def keep_hold(host: Host, hold: Hold) -> None:
    """Note a lease that was taken on a host."""
    part_of(host.state, HeldLeases).by_host[host.name] = hold
    part_of(host.state, Writers).by_host[host.name] = hold


def was_leased(host: Host) -> bool:
    """Return True if the run has taken a lease on a host, whether it still holds it or not."""
    return host.name in part_of(host.state, HeldLeases).by_host


def hold_of(host: Host) -> Hold | None:
    """Return the lease held on a host; None without one."""
    hold = part_of(host.state, HeldLeases).by_host.get(host.name)
    return None if hold is None or hold.is_over else hold


def twin_of(host: Host, lease: str) -> str | None:
    """Return the host name by which this run already holds this lease: another name of the same machine."""
    held = part_of(host.state, HeldLeases).by_host
    return next((name for name, hold in held.items() if name != host.name and hold.id == lease), None)


def forget(host: Host) -> None:
    """Forget the lease of a host that was removed with everything else there: nothing is left to renew or release."""
    if hold := hold_of(host):
        hold.ended.set()


def lease_checked(script: str, lease_id: str, writes: bool = True) -> str:
    """Return a script behind its check: refused when the lease is no longer this run's; otherwise it renews the lease.

    writes: the next writer waits until the script has ended.
    """
    check = host_script("lease_check", lease=LEASE, id=lease_id, ttl=TTL, lost=LOST)
    at_work = f"[ -d {RUN} ] && exec 8>>{LEASE}.writers && flock --shared --timeout 60 8\n" if writes else ""
    return f"{at_work}(\n{check}) || exit $?\n{script}"


def was_refused(errors: Iterable[str]) -> bool:
    """Return True if a command's errors show that the check refused it."""
    return LOST in errors


def why_lost(errors: Iterable[str], now: datetime) -> str:
    """Return the sentence for a refused command, from its errors."""
    reading = parse_seen(errors)
    if reading.lease is None:
        why = "the lease of this run is gone: the host was restarted, or another run has had it since"
    elif reading.lease.holder.purpose in BREAKS:
        holder = reading.lease.holder
        by = f"{holder.user}@{holder.machine} ({holder.purpose})"
        why = f"the lease of this run was taken away by {by}, {span(reading.age)} ago"
    else:
        why = f"the lease of this run was taken over by {whose(reading, now)}"
    return f"{why}; nothing more was changed here; next: run the same command again"
