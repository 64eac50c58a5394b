"""One step of a plan, carried out: which effect belongs to which kind of step."""

from __future__ import annotations

from collections.abc import Callable

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
from rackwright.plan.ownership import OwnershipRecord


def perform(state: State, host: Host, step: Step) -> None:
    """Carry out one step. Raises StepFailedError."""
    match step:
        case Shell() | WriteFile():
            run_simple(state, host, step)
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


def perform_all(change: Change, record: OwnershipRecord, do: Callable[[Step], None]) -> None:
    """Carry out a change with its entries in the ownership record; the one way in which anything does that.

    What is added is recorded before it is made, what is removed after it is gone: cut anywhere, the record names no
    less than what is there. `do` carries one step out, or raises.
    """
    refused = any(isinstance(step, Refuse) for step in change.steps)
    added = frozenset(() if refused else change.owns) - record.owned
    record.add(added, do)
    try:
        for step in change.steps:
            do(step)
    except TakenBackError:
        if len(change.steps) == 1:
            record.drop(added, do)
        raise
    record.drop(change.disowns, do)
