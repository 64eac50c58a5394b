"""The pyinfra operations of a host's maintenance: drain it, take it in again, restart it in its turn."""

from __future__ import annotations

from pyinfra.api import operation
from pyinfra.api.host import Host

from rackwright.concerns.drained import DRAINED, Drained
from rackwright.concerns.endpoint.switch.maintenance import drain_changes, reboot_changes, undrain_changes
from rackwright.effects.remote import say
from rackwright.operations.endpoints import left_drained, queue_up
from rackwright.plan.change import Change
from rackwright.plan.concern import HostReading
from rackwright.pyinfra_glue.hostrun import (
    Commands,
    decide_and_carry_out,
    leased_changes,
    reading_of,
    this_host,
)
from rackwright.pyinfra_glue.inventories import settings_of
from rackwright.runs.handover import received


@operation()
def drain() -> Commands:
    """Mark a host as drained, take its clients away, and stop its endpoints; as the handover says why."""
    host, mark = this_host(), Drained(**(received().mark or {}))
    yield from decide_and_carry_out(host, lambda seen: drain_changes(settings_of(host), seen, mark))


@operation()
def undrain() -> Commands:
    """Start what a drained host served, ask it, and let runs take the host again."""
    host = this_host()
    seen = reading_of(host)
    if seen is not None and seen[DRAINED].drained is None and host.state.is_executing:
        say(host, "it is not drained")
    yield from decide_and_carry_out(host, lambda seen: undrain_changes(settings_of(host), seen))


@operation()
def line_up_restart() -> Commands:
    """Put hosts that are to restart into the gate's queue, in inventory order; changes nothing."""
    host, asked = this_host(), received()
    if not host.state.is_executing:
        return
    before = asked.boots.get(host.name)
    changes = yield from leased_changes(host, lambda seen: _restart(host, seen, asked.back_within, before))
    seen = reading_of(host)
    if changes is not None and seen is not None and not left_drained(host, seen):
        queue_up(host, seen, changes, boot=before or seen[DRAINED].boot)


def _restart(host: Host, seen: HostReading, seconds: int, before: str | None) -> list[Change]:
    return [] if seen[DRAINED].drained else reboot_changes(settings_of(host), seen, seconds, before)
