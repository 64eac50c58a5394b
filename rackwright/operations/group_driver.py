"""The driver of hosts that serve together: where one of them fails with the new one, all of them go back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rackwright.adapter.host import Host
from rackwright.adapter.run_context import part_of
from rackwright.concerns.driver.follow import goes_back, taken_back
from rackwright.concerns.driver.step import DriverReturn
from rackwright.concerns.endpoint.switch.restart_and_wait import Restarted
from rackwright.concerns.endpoint.switch.steps import HostRestart
from rackwright.operations.group_turn import MemberTurn
from rackwright.plan.change import Change
from rackwright.remote.errors import StepFailedError


@contextmanager
def one_driver(host: Host, changes: Sequence[Change], others: Iterable[MemberTurn]) -> Iterator[None]:
    """Take a head and the others of its endpoint back to their driver when a block fails. Raises how that ended."""
    try:
        yield
    except StepFailedError as error:
        everyone = [(host, changes), *((one.host, one.changes) for one in others)]
        restarted = [(one, step) for one, some in everyone for step in _returns(one, some)]
        if not restarted or not goes_back(error):
            raise
        raise taken_back(restarted, error) from None


def _returns(host: Host, changes: Sequence[Change]) -> Iterator[DriverReturn]:
    """Yield the step that waits for a host of several, where it goes down in this run or has done so before."""
    steps = [step for change in changes for step in change.steps]
    if any(isinstance(step, HostRestart) for step in steps) and host.name not in part_of(host.state, Restarted).ordered:
        return
    yield from (step for step in steps if isinstance(step, DriverReturn) and step.together)
