"""A run by its record: where each host stands now, and how it came there. Pure.

The live view and the report both draw a `Timeline`; timeline_events.py adds to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rackwright.plan.drain_end import DrainEnd
from rackwright.record.fault import Failure
from rackwright.record.journal import Event
from rackwright.record.progress import DOWNLOADING, DRAINING, LOADING, PROVING, ROLLING_BACK, VERIFYING
from rackwright.record.states import ENDED_WELL, OPEN, SKIPPED_HOSTS, RunState

STAGING, WAITING = "staging", "waiting"
"""Phases, beside those of progress.py."""
PHASES = (STAGING, DOWNLOADING, VERIFYING, WAITING, DRAINING, LOADING, PROVING, ROLLING_BACK)
"""A host's phases, in the order in which they usually happen."""

WELL = ENDED_WELL | {RunState.TAKEN_BACK}
SKIPPED_STATES = SKIPPED_HOSTS | {RunState.ROLLED_BACK, RunState.NOT_SWITCHED}


@dataclass
class Span:
    """A time that a host spent in one phase; seconds since 1970. `end` is None while it lasts."""

    phase: str
    start: float
    end: float | None = None
    text: str = ""


@dataclass
class DownloadSpan:
    """One download of a host; several run side by side. Seconds since 1970; `end` is None while it lasts."""

    title: str
    start: float
    after: tuple[str, ...] = ()
    """Names of those that it had to wait for."""
    end: float | None = None
    part: float | None = None
    """Its progress, between 0 and 1."""
    done: int | None = None
    """Bytes; None where the record does not say it, as of an image's layers."""
    total: int | None = None
    rate: float | None = None
    """Bytes a second, of late."""
    stalled_since: float | None = None
    """Since when no byte has come; None while some do."""
    longest_stall: float = 0.0
    """Seconds."""
    points: list[tuple[float, int]] = field(default_factory=list)
    """Bytes by time."""

    @property
    def remaining(self) -> float | None:
        """Return seconds until its end at this rate; None where that is not known."""
        if self.total is None or self.done is None or not self.rate or self.stalled_since is not None:
            return None
        return max(0, self.total - self.done) / self.rate

    @property
    def mean_rate(self) -> float | None:
        """Return bytes a second from the first byte that was reported to the last."""
        if len(self.points) < 2:
            return None
        (start, low), (end, high) = self.points[0], self.points[-1]
        return (high - low) / (end - start) if end > start else None


@dataclass(frozen=True)
class AskedRow:
    """The last answer to one question of the gate."""

    name: str
    mark: str
    measured: str
    figure: float | None = None
    before: str = ""
    figure_before: float | None = None
    endpoint: str = ""
    """Empty where the record does not say it."""


@dataclass
class HostTimeline:
    """One host's part of a run."""

    name: str
    state: RunState = RunState.UNSEEN
    final_in: int = 0
    """Number of phases of the run when its state became a last word; 0 before."""
    part: float | None = None
    """The progress of its download, between 0 and 1."""
    message: str = ""
    wave: int | None = None
    began: float | None = None
    """The begin of its switch."""
    took: float | None = None
    """Seconds from the begin of its switch to its end."""
    spans: list[Span] = field(default_factory=list)
    fetches: dict[str, DownloadSpan] = field(default_factory=dict)
    """By the name of their job."""
    rows: dict[tuple[str, str], AskedRow] = field(default_factory=dict)
    """By endpoint and question."""
    switching: str = ""
    """The endpoint whose switch began last."""
    changes: list[str] = field(default_factory=list)
    diffs: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    """Files with the logs of releases that failed here."""
    drains: list[DrainEnd] = field(default_factory=list)
    """The end of each drain here."""

    @property
    def phase(self) -> str:
        """Return what it does now; empty when nothing is under way."""
        return self.spans[-1].phase if self.spans and self.spans[-1].end is None else ""

    @property
    def since(self) -> float | None:
        """Return when what it does now began."""
        return self.spans[-1].start if self.phase else None

    @property
    def is_open(self) -> bool:
        """True until its state is final."""
        return self.state in OPEN

    @property
    def is_bad(self) -> bool:
        """True when its final state is a failure."""
        return not self.is_open and self.state not in WELL | SKIPPED_STATES

    @property
    def endpoints(self) -> list[str]:
        """The endpoints that were asked, in that order."""
        return list(dict.fromkeys(endpoint for endpoint, _ in self.rows))

    @property
    def fetching(self) -> list[DownloadSpan]:
        """The downloads that are under way."""
        return [fetch for fetch in self.fetches.values() if fetch.end is None]

    def enter(self, phase: str, now: float, text: str = "") -> None:
        """Begin a phase, unless it is the one that lasts already."""
        if self.phase == phase and (not text or text == self.spans[-1].text):
            return
        self.leave(now)
        self.spans.append(Span(phase, now, text=text))

    def leave(self, now: float) -> None:
        """End what is under way."""
        self.part = None
        if self.phase:
            self.spans[-1].end = max(now, self.spans[-1].start)


@dataclass(frozen=True)
class Limit:
    """The number of hosts of a group or rack that may be down at a time."""

    most: int
    hosts: frozenset[str]


@dataclass
class WatchedWave:
    """A wave that is watched."""

    wave: int
    start: float
    seconds: float
    hosts: frozenset[str] = frozenset()

    def lasts(self, now: float) -> bool:
        """Return True while it is watched."""
        return now < self.start + self.seconds


@dataclass
class Timeline:
    """One run, as far as its record goes."""

    who: str = ""
    what: str = ""
    began: float | None = None
    now: float | None = None
    """Time of the newest event."""
    ended: float | None = None
    status: int | None = None
    text: str = ""
    phase: str = ""
    phases: list[tuple[str, float]] = field(default_factory=list)
    hosts: dict[str, HostTimeline] = field(default_factory=dict)
    waves: list[list[str]] = field(default_factory=list)
    """Names by wave, in the current phase; the canaries first."""
    marks: list[tuple[str, float]] = field(default_factory=list)
    """The begin of each wave's switches, and of the run's way back."""
    limits: dict[str, Limit] = field(default_factory=dict)
    bake: float = 0.0
    """Seconds for which each wave is to be watched before the next."""
    bakes: list[WatchedWave] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    typical: float | None = None
    """Seconds that a switch took in earlier runs; None before the first of them."""

    def host(self, event: Event) -> HostTimeline:
        """Return the host of an event. Raises KeyError or TypeError when it has none."""
        name = event["host"]
        if not isinstance(name, str):
            raise TypeError(name)
        return self.hosts.setdefault(name, HostTimeline(name))

    @property
    def wave(self) -> int | None:
        """The lowest wave that is not finished, counted from 0, the canaries'; None before and after them."""
        return next(
            (at for at, names in enumerate(self.waves) if any(self._is_open(name) for name in names)),
            None,
        )

    @property
    def endpoints(self) -> list[str]:
        """The endpoints that any host was asked, in that order."""
        return list(dict.fromkeys(endpoint for host in self.hosts.values() for endpoint in host.endpoints))

    @property
    def drains(self) -> list[DrainEnd]:
        """Return the end of each drain, on all hosts."""
        return [drain for host in self.hosts.values() for drain in host.drains]

    @property
    def cut(self) -> int:
        """Requests that were open when their endpoint was stopped, as far as they could be counted."""
        return sum(drain.cut or 0 for drain in self.drains)

    def is_final(self, host: HostTimeline) -> bool:
        """Return True when the host's state is final in the phase that runs."""
        return not host.is_open and host.final_in == len(self.phases) + 1

    def _is_open(self, name: str) -> bool:
        return name in self.hosts and self.hosts[name].is_open

    @property
    def duration(self) -> float:
        """Seconds from the begin to the end, or to the newest event."""
        end = self.ended or self.now
        return max(0.0, end - self.began) if end is not None and self.began is not None else 0.0


def wave_name(number: int) -> str:
    """Return `canaries`, `wave 1`, ..."""
    return f"wave {number}" if number else "canaries"
