"""The pyinfra operations of a driver switch: bring the packages, queue the hosts up; each then restarts in its turn."""

from __future__ import annotations

from rackwright.adapter.host import Host, this_host
from rackwright.adapter.operation import operation
from rackwright.adapter.run.inventories import settings_of
from rackwright.concerns.drained import DRAINED
from rackwright.concerns.driver import DRIVER, stage_changes
from rackwright.concerns.driver.switch import driver_changes, gpu_checks
from rackwright.operations.endpoints import left_drained, queue_up
from rackwright.operations.hostrun import Commands, decide_and_carry_out, fail, leased_changes, reading_of
from rackwright.plan.change import Change, Refuse
from rackwright.plan.concern import HostReading
from rackwright.record.handover import received
from rackwright.record.journal import note
from rackwright.record.states import RunState


@operation()
def stage_drivers() -> Commands:
    """Bring the packages of the wanted driver, and those of the way back, as a deploy does; nothing is installed."""
    host = this_host()
    if host.name not in received().boots:
        yield from decide_and_carry_out(host, lambda reading: _staging(host, reading))


def _staging(host: Host, reading: HostReading) -> list[Change]:
    if reading[DRAINED].drained:
        return []
    return stage_changes(DRIVER.wanted(settings_of(host), reading), reading[DRIVER])


@operation()
def line_up_drivers() -> Commands:
    """Put hosts whose driver is to be switched into the turn queue, in inventory order; changes nothing."""
    host, handover = this_host(), received()
    if not host.state.is_executing:
        return
    before = handover.boots.get(host.name)
    changes = yield from leased_changes(host, lambda reading: _switch(host, reading, handover.back_within, before))
    reading = reading_of(host)
    if changes is None or reading is None or left_drained(host, reading):
        return
    refused = [step.message for change in changes for step in change.steps if isinstance(step, Refuse)]
    if refused:
        note("host", host=host.name, state=RunState.REFUSED, text="; ".join(refused))
        for text in refused:
            yield fail(text)
        return
    queue_up(host, reading, changes, boot=before or reading[DRAINED].boot)


def _switch(host: Host, reading: HostReading, seconds: int, before: str | None) -> list[Change]:
    return [] if reading[DRAINED].drained else driver_changes(settings_of(host), reading, seconds, before, gpu_checks)
