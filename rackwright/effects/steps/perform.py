"""Steps of a plan, carried out: which effect belongs to which kind of step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from pyinfra.api.host import Host
from pyinfra.api.state import State

from rackwright.effects.remote import StepFailedError, TakenBackError, run_guarded, run_job, run_simple
from rackwright.effects.steps.dockerd import restart_and_prove
from rackwright.effects.steps.endpoint import switch_and_prove
from rackwright.effects.steps.host_restart import restart_host, return_and_prove
from rackwright.plan.change import (
    Change,
    DaemonRestart,
    Guarded,
    HostRestart,
    HostReturn,
    Job,
    Proved,
    Refuse,
    Shell,
    Step,
    WriteFile,
)
from rackwright.plan.ownership import OwnershipRecord, render_record

Batch = Sequence[Step]
"""Steps that go to a host together: any number of simple ones, or a single one of another kind."""


def perform(state: State, host: Host, batch: Batch) -> None:
    """Carry out a batch of steps. Raises StepFailedError."""
    step = batch[0]
    match step:
        case Shell() | WriteFile():
            run_simple(state, host, *(one for one in batch if isinstance(one, Shell | WriteFile)))
        case Job():
            run_job(state, host, step)
        case Guarded():
            run_guarded(state, host, step)
        case Proved():
            switch_and_prove(state, host, step)
        case DaemonRestart():
            restart_and_prove(state, host, step)
        case HostRestart():
            restart_host(state, host, step)
        case HostReturn():
            return_and_prove(state, host, step)
        case Refuse():
            raise StepFailedError(step.text, code=step.code)


def perform_all(change: Change, record: OwnershipRecord, do: Callable[[Batch], None]) -> None:
    """Carry out a change with its entries in the ownership record; the one way in which anything does that.

    What is added is recorded before it is made, what is removed after it is gone: cut anywhere, the record names no
    less than what is there. `do` carries a batch out, or raises.
    """
    refused = any(isinstance(step, Refuse) for step in change.steps)
    before = record.owned
    during = before if refused else before | frozenset(change.owns)
    after = during - frozenset(change.disowns)
    first = record.writes(during)
    last = [render_record(after)] if after != during else []
    # When a batch fails, nobody knows how far it came: the record keeps what may be there, and is written again.
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
