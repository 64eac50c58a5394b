"""Steps of a plan, carried out: which effect belongs to which kind of step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from rackwright.adapter.host import Host
from rackwright.concerns.dockerd.follow import restart_and_prove
from rackwright.concerns.driver.follow import return_with_driver
from rackwright.concerns.driver.step import DriverReturn
from rackwright.concerns.endpoint.switch.follow import switch_and_prove
from rackwright.concerns.endpoint.switch.restart_and_wait import restart_host, return_and_prove
from rackwright.concerns.endpoint.switch.steps import DaemonRestart, HostRestart, HostReturn, Proved
from rackwright.plan.change import Change, Guarded, Job, Refuse, Shell, Step, WriteFile
from rackwright.plan.ownership import OwnershipRecord, render_record
from rackwright.record.journal import note
from rackwright.remote.commands import run_simple
from rackwright.remote.errors import StepFailedError, TakenBackError
from rackwright.remote.guards import run_guarded
from rackwright.remote.jobs import run_job

Batch = Sequence[Step]
"""Steps that go to a host together: any number of simple ones, or a single one of another kind."""


def perform(host: Host, batch: Batch) -> None:
    """Carry out a batch of steps. Raises StepFailedError."""
    step = batch[0]
    match step:
        case Shell() | WriteFile():
            run_simple(host, *(one for one in batch if isinstance(one, Shell | WriteFile)))
        case Job():
            run_job(host, step)
        case Guarded():
            run_guarded(host, step)
        case Proved():
            switch_and_prove(host, step)
        case DaemonRestart():
            restart_and_prove(host, step)
        case HostRestart():
            restart_host(host, step)
        case DriverReturn():
            return_with_driver(host, step)
        case HostReturn():
            return_and_prove(host, step)
        case Refuse():
            if step.mistake:
                note("settings", host=host.name, text=step.message, fix=step.mistake)
            raise StepFailedError(step.text, code=step.code)


def perform_all(change: Change, record: OwnershipRecord, do: Callable[[Batch], None]) -> None:
    """Carry out a change with its entries in the ownership record; the only function that does so.

    An addition is recorded before it is made, a removal after it is done: wherever a run stops, the record lists at
    least what exists. `do` carries a batch out, or raises.
    """
    refused = any(isinstance(step, Refuse) for step in change.steps)
    before = record.owned
    during = before if refused else before | frozenset(change.owns)
    after = during - frozenset(change.disowns)
    first = record.writes(during)
    last = [render_record(after)] if after != during else []
    # When a batch fails, its progress is unknown: the record keeps what may exist, and is written again.
    record.owned, record.certain = during, record.certain and not (first or last)
    try:
        for batch in _batches([*first, *change.steps, *last]):
            do(batch)
    except TakenBackError:
        if len(change.steps) == 1 and during != before:
            do([render_record(before)])
            record.owned, record.certain = before, True
        raise
    record.owned, record.certain = after, True


def _batches(steps: Iterable[Step]) -> Iterator[Batch]:
    for simple, some in groupby(steps, lambda step: isinstance(step, Shell | WriteFile)):
        together = tuple(some)
        yield from [together] if simple else [(step,) for step in together]
