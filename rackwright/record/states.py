"""The states of a host in a run, as its record has them (docs/reference/run-record.md)."""

from __future__ import annotations

from enum import StrEnum


class RunState(StrEnum):
    """The state of a host in a run, or how it ended."""

    UNSEEN = "no word yet"
    STAGING = "staging"
    WAITING = "waiting"
    SWITCHING = "switching"
    SWITCHED = "switched"
    UNCHANGED = "unchanged"
    DONE = "done"
    ROLLED_BACK = "rolled back"
    """The new release failed on it, and the proven one serves again."""
    TAKEN_BACK = "taken back"
    """It left the release because of other hosts, or by hand."""
    NOTHING_SERVES = "nothing serves"
    """Rolling back failed; or it served, and there was nothing to roll back to."""
    UNKNOWN = "unknown"
    """Its switch's job was ended from outside: the host rolls back on its own, and the run did not see how it ended."""
    FAILED = "failed"
    AFTERWARDS = "failed after its switch"
    NOT_SWITCHED = "not switched"
    NOT_CONVERGED = "not converged"
    NOT_STAGED = "failed before its switch"
    UNREACHABLE = "unreachable"
    BUSY = "busy"
    """Another run had its lease: nothing was done."""
    SKIPPED = "skipped"
    QUARANTINED = "quarantined"
    DRAINED = "drained"
    """An operator has drained it for maintenance: its endpoints are left unchanged."""
    REFUSED = "refused"
    """It keeps nothing to roll back to."""


WELL = frozenset({RunState.SWITCHED, RunState.UNCHANGED})
ENDED_WELL = WELL | {RunState.DONE}
SKIPPED_HOSTS = frozenset({RunState.SKIPPED, RunState.QUARANTINED, RunState.DRAINED})
NOT_REACHED = frozenset({RunState.UNREACHABLE, RunState.NOT_STAGED, RunState.NOT_CONVERGED, RunState.BUSY})
"""Something went wrong with them, and it was not their switch."""
UNTOUCHED = SKIPPED_HOSTS | {RunState.NOT_SWITCHED}
OPEN = frozenset({RunState.UNSEEN, RunState.STAGING, RunState.WAITING, RunState.SWITCHING})
"""Not a last word."""
UNRECOVERED = frozenset({RunState.NOTHING_SERVES, RunState.UNKNOWN, RunState.SWITCHING})
"""As last words: it may not serve."""


def state_named(text: str) -> RunState | None:
    """Return the state of this name; None for one that this version does not have."""
    return RunState(text) if text in set(RunState) else None
