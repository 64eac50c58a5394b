"""The state of a run: hosts that are well, those to blame, and those that only bear the consequences. Pure."""

from __future__ import annotations

from rackwright.record.record import BY_HAND
from rackwright.record.states import OPEN, SKIPPED_HOSTS, RunState
from rackwright.record.view.timeline import SKIPPED_STATES, WELL, HostTimeline, Timeline

GOOD, BAD, WARN, BUSY, IDLE = "good", "bad", "warn", "busy", "idle"
TROUBLE = (BAD, WARN)
CONSEQUENCES = SKIPPED_HOSTS | {RunState.NOT_SWITCHED, RunState.WAITING, RunState.UNSEEN, RunState.TAKEN_BACK}
"""States that hosts are in because of other hosts, or because of an earlier run."""
UNASKED = frozenset({RunState.UNCHANGED, RunState.DONE})
"""States of hosts that the run had no reason to ask anything: well, and not proven by it."""
RANK = (BAD, WARN, BUSY, IDLE, GOOD)


def tone(timeline: Timeline, state: RunState) -> str:
    """Return how good a state is in a run."""
    if state in OPEN:
        if timeline.ended is not None:
            return BAD if state is RunState.SWITCHING else WARN
        return IDLE if state is RunState.UNSEEN else BUSY
    if state in UNASKED:
        return IDLE
    if state is RunState.TAKEN_BACK:
        return GOOD if timeline.phase == BY_HAND else WARN
    return GOOD if state in WELL else WARN if state in SKIPPED_STATES else BAD


def tone_of(timeline: Timeline, host: HostTimeline) -> str:
    """Return how good a host's state is: a release that serves is well only when a row of the gate has proven it."""
    kind = tone(timeline, host.state)
    return WARN if kind == GOOD and not any(row.mark == "proved" for row in host.rows.values()) else kind


def worst_first(timeline: Timeline) -> list[HostTimeline]:
    """Return the hosts with failures before those that went well, each kind in inventory order."""

    def rank(host: HostTimeline) -> tuple[int, bool, bool]:
        return RANK.index(tone(timeline, host.state)), host.state in CONSEQUENCES, host.state is RunState.TAKEN_BACK

    return sorted(timeline.hosts.values(), key=rank)


def culprits(timeline: Timeline) -> list[HostTimeline]:
    """Return the hosts on which something went wrong, without those that only bear the consequences.

    One that failed while its wave was watched was taken back with the others, and is the cause anyway.
    """
    bad = [host for host in worst_first(timeline) if tone(timeline, host.state) in TROUBLE]
    return [host for host in bad if not _bears(timeline, host)]


def _bears(timeline: Timeline, host: HostTimeline) -> bool:
    """Return True for a host whose state only follows from others."""
    return host.state in CONSEQUENCES and host.name not in {failure.host for failure in timeline.failures}


def consequences(timeline: Timeline) -> dict[RunState, list[str]]:
    """Return the hosts that were left or taken out because of others, by their state."""
    found: dict[RunState, list[str]] = {}
    for host in worst_first(timeline):
        if _bears(timeline, host) and tone(timeline, host.state) in TROUBLE:
            found.setdefault(host.state, []).append(host.name)
    return found


def states(timeline: Timeline) -> list[tuple[RunState, str, int]]:
    """Return each state with its tone and how many hosts are in it, the worst first."""
    found: dict[RunState, list[str]] = {}
    for host in worst_first(timeline):
        found.setdefault(host.state, []).append(tone_of(timeline, host))
    return [(state, min(kinds, key=RANK.index), len(kinds)) for state, kinds in found.items()]


def clock(seconds: float) -> str:
    """Return `0.4 s`, `12 s`, `3:20`, `2:05:00`."""
    if seconds < 60:
        return f"{seconds:.1f} s" if 0 < seconds < 10 and seconds != int(seconds) else f"{round(seconds)} s"
    minutes, seconds_over = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds_over:02}" if hours else f"{minutes}:{seconds_over:02}"
