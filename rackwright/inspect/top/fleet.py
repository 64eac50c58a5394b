"""The hosts of a fleet as their readings come in: the last status of each, its last looks, and what is wrong. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rackwright.inspect.status.rows import StatusRow
from rackwright.inspect.top.host_sample import EngineNow, HostSample

STALE = 15.0
"""Seconds without a reading after which a host counts as silent: a look at an engine that does not answer takes 5."""
REREAD = 60.0
"""Seconds between two readings of status of a host, unless something has changed: one costs what thirty looks do."""
LOOKS = 6
"""Looks over which a rate is taken: requests end in lumps."""


@dataclass
class HostNow:
    """One host."""

    name: str
    rows: Sequence[StatusRow] = ()
    """Of its last status; empty before the first."""
    looks: deque[HostSample] = field(default_factory=lambda: deque(maxlen=LOOKS))
    trouble: str = ""
    """The reason for which it is lost; empty for a host that answers."""
    read_at: float | None = None
    """The time of its last reading, by this machine's monotonic clock."""
    status_at: float | None = None
    quarantine: str = ""
    """The reason for which rollouts leave it out, by the site's list."""

    @property
    def sample(self) -> HostSample | None:
        """The last look."""
        return self.looks[-1] if self.looks else None

    def add(self, look: HostSample, rows: Sequence[StatusRow] | None, now: float) -> None:
        """Add a reading. rows: those of status where it was read, too."""
        if self.looks and look.uptime < self.looks[-1].uptime:
            self.looks.clear()  # it was restarted
        self.looks.append(look)
        self.trouble, self.read_at = "", now
        if rows is not None:
            self.rows, self.status_at = rows, now

    def lose(self, why: str) -> None:
        """Note that it does not answer."""
        self.trouble = why
        self.looks.clear()

    def silent_for(self, now: float) -> float:
        """Return the seconds without a reading, where they are more than a few intervals; else 0."""
        seconds = 0.0 if self.read_at is None else now - self.read_at
        return seconds if seconds > STALE else 0.0


def rate(host: HostNow, endpoint: str) -> float | None:
    """Return the tokens that an engine makes in a second, between the oldest look that fits and the last one.

    None with less than two looks, without a counter, and right after the engine's start, which sets it to zero.
    """
    counts = [(one.uptime, engine.tokens) for one in host.looks if (engine := one.engines.get(endpoint))]
    fitting: list[tuple[float, float]] = []
    for uptime, tokens in counts:
        if tokens is None or (fitting and tokens < fitting[-1][1]):
            fitting = []
        if tokens is not None:
            fitting.append((uptime, tokens))
    if len(fitting) < 2 or fitting[-1][0] <= fitting[0][0]:
        return None
    return (fitting[-1][1] - fitting[0][1]) / (fitting[-1][0] - fitting[0][0])


def needs_status(host: HostNow, now: float) -> bool:
    """Return True if the next reading must be one of status: it is old, or the last looks contradict it."""
    if host.status_at is None or now - host.status_at >= REREAD or _has_ended_work(host):
        return True
    return _differs(host.sample, [row for row in host.rows if not row.head or row.head == row.host])


def _has_ended_work(host: HostNow) -> bool:
    """Return True if a job or a run has ended between the last two looks: it may have left another state."""
    if len(host.looks) < 2:
        return False
    before, after = host.looks[-2], host.looks[-1]
    ended = {job.name for job in before.jobs} - {job.name for job in after.jobs}
    return bool(ended) or (_is_leased(before) and not _is_leased(after))


def _is_leased(look: HostSample) -> bool:
    return look.lease is not None and look.lease.live is not None


def _differs(look: HostSample | None, rows: Iterable[StatusRow]) -> bool:
    if look is None:
        return False
    answers = {name: engine.code == OK for name, engine in look.engines.items()}
    return any(row.endpoint in answers and answers[row.endpoint] != row.serving for row in rows)


OK = 200


def engine_of(host: HostNow, endpoint: str) -> EngineNow:
    """Return an engine's last figures; empty ones before the first look."""
    return (host.sample.engines.get(endpoint) if host.sample else None) or EngineNow()
