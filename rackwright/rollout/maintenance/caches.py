"""The work of `rackwright cache` on hosts, from its control process: one phase, no waves, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import as_file, files

from rackwright.exit_codes import ExitCode
from rackwright.messages import coded
from rackwright.plan.jobstream import DAMAGED
from rackwright.record.ending import Result, stopped
from rackwright.record.journal import Event, read_record
from rackwright.record.record import CACHE_PRUNE, CACHE_REPAIR, CACHE_VERIFY
from rackwright.record.states import RunState
from rackwright.rollout.launch import Run, phase

DONE = {
    CACHE_VERIFY: "every file is as it was verified",
    CACHE_REPAIR: "every file is as it was verified, or was fetched again",
    CACHE_PRUNE: "what nothing needs is gone",
}
SHOWN = 5
"""Damaged files that the last line names."""


def care_for(run: Run, purpose: str, agreed: Sequence[str] = ()) -> tuple[int, str]:
    """Verify, repair or prune the caches of the run's hosts; returns the exit status and what to say.

    agreed: as the handover has it.
    """
    started = run.as_plain()
    started.note("phase", name=purpose)
    with as_file(files("rackwright.operations.deploys") / "cache.py") as deploy:
        status = started.pyinfra(deploy, started.hosts, {}, purpose=purpose, agreed=list(agreed))
    found = phase(started, purpose)
    undone = [host for host in started.hosts if found.states.get(host) != RunState.DONE]
    damaged = damaged_in(read_record(started.record))
    if undone or status != ExitCode.DONE:
        more = f"; not as verified: {_some(damaged)}" if damaged else ""
        text = f"not done on {', '.join(undone) or 'some hosts'}, see above{more}; next: the same command again"
        return _part_done(found, purpose), coded("RW0844", text)
    if damaged:
        text = f"not as verified: {_some(damaged)}; next: rackwright cache repair {run.inventory}"
        return ExitCode.PENDING, coded("RW0854", text)
    return ExitCode.DONE, f"done: {DONE[purpose]}"


def damaged_in(events: Sequence[Event]) -> list[str]:
    """Return the damaged files that the hosts of a run have named, each behind its host's name."""
    found = [f"{event['host']} {event['text']}" for event in events if event["kind"] == DAMAGED]
    return list(dict.fromkeys(found))


def _part_done(found: Result, purpose: str) -> ExitCode:
    """Return how a run ended that was not done everywhere: one that only reads leaves no change on some hosts."""
    return ExitCode.ERROR if purpose == CACHE_VERIFY else stopped(found.named(RunState.DONE))


def _some(damaged: Sequence[str]) -> str:
    more = f" and {len(damaged) - SHOWN} more" if len(damaged) > SHOWN else ""
    return f"{', '.join(damaged[:SHOWN])}{more}"
