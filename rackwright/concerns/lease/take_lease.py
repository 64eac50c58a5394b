"""Take a host's lease before a change, renew it, and release it with the connection."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime

from rackwright.adapter.command_output import tail
from rackwright.adapter.concurrency import spawn
from rackwright.adapter.connection import before_closing
from rackwright.adapter.host import Host, say
from rackwright.adapter.timeouts import is_lost
from rackwright.concerns.lease import (
    LAST_NUMBER,
    LEASE,
    TTL,
    Lease,
    LeaseHolder,
    SeenLease,
    parse_seen,
    read_script,
    span,
    whose,
)
from rackwright.concerns.lease.own_leases import Hold, keep_hold, lease_checked, twin_of, was_refused, why_lost
from rackwright.concerns.lease.run_slice import keep_slice
from rackwright.concerns.lease.this_process import is_gone, run_word, this_holder
from rackwright.hostside import host_script
from rackwright.messages import waiting
from rackwright.plan.change import Shell
from rackwright.record.cause import Cause, Reason
from rackwright.record.journal import note
from rackwright.record.states import RunState
from rackwright.remote.commands import command_of, complain, remote
from rackwright.remote.errors import LeaseLostError, NotStartedError, StepFailedError

PATIENCE = 45
"""Seconds that a command of the previous writer has to end."""
RENEWAL = 30
"""Seconds that a host may take to renew a lease."""
RELEASE_TIME = 3
"""Seconds that this run's command has to end before its lease is left to expire."""


class LeaseHeldError(NotStartedError):
    """Another run writes to the host; nothing was done there."""

    code = "RW0705"
    reasons = (Reason(Cause.LEASE, "the lease"),)


@dataclass(frozen=True)
class Taken:
    """A lease that was taken. `fresh`: no run has written to the host since the reading."""

    id: str
    fresh: bool


def acquire_script(last_number: int, holder: LeaseHolder, displace: str = "", ttl: int = TTL) -> str:
    """Return the script that takes the lease, or prints its holder.

    last_number: the fence that the reading saw. displace: id of a lease that counts as ended. ttl: seconds; 0 leaves a
    lease that has already ended.
    """
    return host_script(
        "lease_acquire",
        **asdict(holder),
        lease=LEASE,
        fence=LAST_NUMBER,
        seen=last_number,
        displace=displace,
        run=run_word(),
        ttl=ttl,
        patience=PATIENCE,
    )


def parse_acquired(lines: Sequence[str]) -> Taken | SeenLease:
    """Parse the output of `acquire_script`: the lease, or the one that another run holds. Raises ValueError."""
    for number, row in enumerate(lines):
        words = row.split()
        if words[:2] == ["lease", "taken"]:
            return Taken(words[2], words[3] == "fresh")
        if words[:2] == ["lease", "held"]:
            return parse_seen(lines[number + 1 :])
    raise ValueError("no lease in the reply")


def ask_for(host: Host, script: str) -> Taken | SeenLease:
    """Run an `acquire_script`. Raises StepFailedError."""
    with waiting(lambda: f"the lease of {host.name}"):
        ok, output = remote(host, command_of(Shell(script, timeout=PATIENCE + 60)))
    try:
        if ok:
            return parse_acquired(output.stdout_lines)
    except ValueError:
        pass
    raise NotStartedError(
        f"the lease of this host could not be taken, so nothing was done: {tail(output)}", code="RW0704"
    )


def take(host: Host, reading: SeenLease, outside: bool = False) -> Taken:
    """Take the host's lease for this process, and keep it until its connection is closed.

    A lease whose process has ended on this machine is taken over at once. outside: the run was not begun for this host,
    so its record says nothing of it, and it keeps no slice. Raises LeaseHeldError, or another StepFailedError.
    """
    taken = ask_for(host, acquire_script(reading.last_number, this_holder()))
    dead = _gone(taken)
    if dead is not None:
        taken = ask_for(host, acquire_script(reading.last_number, this_holder(), dead.id))
    if isinstance(taken, SeenLease):
        twin = twin_of(host, taken.live.id) if taken.live else None
        error = _same_machine(host.name, twin) if twin else LeaseHeldError(refusal(host.name, taken))
        if not outside:
            note("host", host=host.name, state=RunState.BUSY, text=str(error))
        raise error
    if dead is not None:
        say(
            host, f"taking over from {dead.holder.purpose} (process {dead.holder.pid} of this machine), which has ended"
        )
    _keep(host, Hold(taken.id, outside=outside))
    if not outside:
        keep_slice(host)
    return taken


def take_again(host: Host) -> None:
    """Take a lease again: the first was in the host's memory, and was lost with its restart. Raises StepFailedError."""
    ok, output = remote(host, command_of(Shell(read_script(), timeout=30)))
    if not ok:
        raise NotStartedError(f"the lease of this host could not be read: {tail(output)}", code="RW0704")
    take(host, parse_seen(output.stdout_lines))


def _gone(answer: Taken | SeenLease) -> Lease | None:
    live = answer.live if isinstance(answer, SeenLease) else None
    return live if live is not None and is_gone(live.holder) else None


def refusal(host: str, held: SeenLease) -> str:
    """Return the message when another run holds the lease."""
    return (
        f"another run writes to this host: {whose(held, datetime.now().astimezone())}; its lease ends in "
        f"{span(held.remaining)} unless it is renewed; nothing was done here; next: wait and run the same command "
        f"again, or, when that run is known to be dead: rackwright lease break INVENTORY --limit {host}"
    )


def _same_machine(host: str, twin: str) -> LeaseHeldError:
    text = (
        f"{host} and {twin} are two names of one machine, and this run writes to it as {twin}; nothing was done here; "
        f"next: take one of the two out of the inventory"
    )
    return LeaseHeldError(text, code="RW0764")


def _keep(host: Host, hold: Hold) -> None:
    keep_hold(host, hold)
    spawn(lambda: _renew(host, hold))
    # A lease is released over the connection that took it, however the run ends.
    before_closing(host, lambda: give_back(host, hold))


def _renew(host: Host, hold: Hold) -> None:
    while not hold.ended.wait(TTL / 3):
        if time.monotonic() - hold.renewed < TTL / 3:
            continue
        try:
            renewal = Shell(lease_checked("", hold.id, writes=False), timeout=RENEWAL)
            ok, output = remote(host, command_of(renewal), quiet=True)
        except StepFailedError:
            continue  # the next command reports the error
        if ok:
            hold.renewed = time.monotonic()
        elif was_refused(output.stderr_lines) and not hold.ended.is_set():
            hold.ended.set()
            complain(host, str(LeaseLostError(why_lost(output.stderr_lines, datetime.now().astimezone()))))


def give_back(host: Host, hold: Hold) -> None:
    """Release a lease, within seconds; one that cannot be released expires."""
    if hold.ended.is_set():
        return
    going = spawn(lambda: _release_on_disconnect(host, hold))
    # A connection that hangs must not hold up the end of the run.
    going.join(3 * RELEASE_TIME)
    hold.ended.set()


def _release_on_disconnect(host: Host, hold: Hold) -> None:
    if not hold.outside and not is_lost(host):
        keep_slice(host)
    hold.ended.set()
    _release(host, hold.id)


def clear_dead(host: Host, reading: SeenLease) -> None:
    """Remove a lease whose process has ended on this machine, where no lease is needed."""
    if reading.live is not None and is_gone(reading.live.holder):
        _release(host, reading.live.id)


def _release(host: Host, lease_id: str) -> None:
    if is_lost(host):
        return
    script = host_script("lease_release", lease=LEASE, id=lease_id, patience=RELEASE_TIME)
    with suppress(StepFailedError):
        remote(host, command_of(Shell(script, timeout=3 * RELEASE_TIME)), quiet=True)
