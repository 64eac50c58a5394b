"""The pyinfra operations of a host's maintenance: drain it, take it in again, restart it in its turn."""

from __future__ import annotations

from collections.abc import Generator

from rackwright.adapter.host import Host, say, this_host
from rackwright.adapter.operation import PyinfraCommand, operation
from rackwright.adapter.run.inventories import settings_of
from rackwright.concerns.drained import DRAINED, Drained
from rackwright.concerns.endpoint.switch.rest_and_return import (
    drain_changes,
    follow_to_rest,
    follower_undrain_changes,
    left_by_head,
    reboot_changes,
    undrain_changes,
    wait_changes,
)
from rackwright.operations.endpoints import left_drained, queue_up
from rackwright.operations.hostrun import (
    Commands,
    decide_and_carry_out,
    fail,
    leased_changes,
    reading_of,
)
from rackwright.plan.change import Change
from rackwright.plan.concern import HostReading
from rackwright.record.handover import received
from rackwright.record.journal import note
from rackwright.record.states import RunState


@operation()
def drain() -> Commands:
    """Mark a host as drained, take its clients away, and stop its endpoints; as the handover says why."""
    host, mark = this_host(), Drained(**(received().mark or {}))
    yield from decide_and_carry_out(host, lambda reading: drain_changes(settings_of(host), reading, mark))


@operation()
def rest_followers() -> Commands:
    """Stop what serves with a head that rests now; without its head a member starts nothing."""
    host = this_host()
    if settings_of(host).follows and (yield from _heads_are_well(host)):
        yield from decide_and_carry_out(host, follow_to_rest)


def _heads_are_well(host: Host) -> Generator[PyinfraCommand, None, bool]:
    """Return whether the head of a host's group has not failed in this run; fails the host when it has."""
    group = settings_of(host).group
    failed = {other.name for other in host.state.failed_hosts}
    if group is None or group.head.host not in failed:
        return True
    yield fail(left_by_head(group.head.host))
    return False


@operation()
def let_followers_wait() -> Commands:
    """Let drained hosts that serve with a head wait for it, before it starts."""
    host = this_host()
    if settings_of(host).follows:
        yield from decide_and_carry_out(host, wait_changes)


@operation()
def undrain_followers() -> Commands:
    """Wait until a host serves with its head again, and let runs take it."""
    host = this_host()
    if settings_of(host).follows and (yield from _heads_are_well(host)):
        yield from decide_and_carry_out(host, lambda reading: follower_undrain_changes(settings_of(host), reading))


@operation()
def undrain() -> Commands:
    """Start what a drained host served, ask it, and let runs take the host again."""
    host = this_host()
    if settings_of(host).follows:
        return
    reading = reading_of(host)
    if reading is not None and reading[DRAINED].drained is None and host.state.is_executing:
        say(host, "it is not drained")
        note("host", host=host.name, state=RunState.UNCHANGED)
    yield from decide_and_carry_out(host, lambda reading: undrain_changes(settings_of(host), reading))


@operation()
def line_up_restart() -> Commands:
    """Put hosts that are to restart into the turn queue, in inventory order; changes nothing."""
    host, handover = this_host(), received()
    if not host.state.is_executing:
        return
    before = handover.boots.get(host.name)
    changes = yield from leased_changes(host, lambda reading: _restart(host, reading, handover.back_within, before))
    reading = reading_of(host)
    if changes is not None and reading is not None and not left_drained(host, reading):
        queue_up(host, reading, changes, boot=before or reading[DRAINED].boot)


def _restart(host: Host, reading: HostReading, seconds: int, before: str | None) -> list[Change]:
    return [] if reading[DRAINED].drained else reboot_changes(settings_of(host), reading, seconds, before)
