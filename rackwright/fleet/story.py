"""What a run's record tells, event by event: where each host stands now, and how it came there. Pure.

The live view and the report both draw a `Story`. Events of a kind that is not known here, and broken ones, change
nothing: a view must never be what ends a rollout.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rackwright.fleet.journal import Event
from rackwright.fleet.progress import DOWNLOADING, DRAINING, GOING_BACK, LOADING, PROVING, VERIFYING
from rackwright.fleet.record import BACKWARD, BY_HAND, ENDED_WELL, LEFT_ASIDE, NOT_SWITCHED, SWITCHING, TAKEN_BACK

STAGING, WAITING = "staging", "waiting"
PHASES = (STAGING, DOWNLOADING, VERIFYING, WAITING, DRAINING, LOADING, PROVING, GOING_BACK)
"""What a host does, in the order in which it usually happens."""

UNSEEN, FAILED = "no word yet", "failed"
WELL = ENDED_WELL | {TAKEN_BACK}
ASIDE = LEFT_ASIDE | {"went back", NOT_SWITCHED}
OPEN = frozenset({UNSEEN, STAGING, WAITING, SWITCHING})

_DOWNLOADS = ("pull-", "model-", "fetch-")


@dataclass
class Span:
    """A time that a host spent in one phase; seconds since 1970. `end` is None while it lasts."""

    phase: str
    start: float
    end: float | None = None
    text: str = ""


@dataclass(frozen=True)
class Row:
    """The last answer to one question of the gate."""

    name: str
    mark: str
    seen: str
    figure: float | None = None
    before: str = ""
    figure_before: float | None = None


@dataclass
class HostStory:
    """One host's part of a run."""

    name: str
    state: str = UNSEEN
    part: float | None = None
    """How far its download is, between 0 and 1."""
    said: str = ""
    wave: int | None = None
    began: float | None = None
    """When its switch began."""
    took: float | None = None
    """Seconds from the begin of its switch to its end."""
    spans: list[Span] = field(default_factory=list)
    rows: dict[str, Row] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    diffs: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    """Files with the logs of releases that failed here."""

    @property
    def phase(self) -> str:
        """What it does now; empty when nothing is under way."""
        return self.spans[-1].phase if self.spans and self.spans[-1].end is None else ""

    @property
    def since(self) -> float | None:
        """When what it does now began."""
        return self.spans[-1].start if self.phase else None

    @property
    def is_open(self) -> bool:
        """True until its state is a last word."""
        return self.state in OPEN

    @property
    def is_bad(self) -> bool:
        """True when its last word is a failure."""
        return not self.is_open and self.state not in WELL | ASIDE

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
    """How many hosts of a group or rack may be down at a time."""

    most: int
    hosts: frozenset[str]


@dataclass
class Bake:
    """A wave that is watched."""

    wave: int
    start: float
    seconds: float


@dataclass
class Story:
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
    hosts: dict[str, HostStory] = field(default_factory=dict)
    waves: list[list[str]] = field(default_factory=list)
    """Names by wave, in the phase that goes on; the canaries first."""
    marks: list[tuple[str, float]] = field(default_factory=list)
    """When each wave began to switch, and when the run began to go back."""
    limits: dict[str, Limit] = field(default_factory=dict)
    bakes: list[Bake] = field(default_factory=list)
    failures: list[Mapping[str, Any]] = field(default_factory=list)

    def take(self, event: Event) -> None:
        """Go on by one event."""
        # A record may be of another version, or half of it lost: what cannot be read is left out.
        with suppress(KeyError, TypeError, ValueError, AttributeError, OverflowError):
            now = datetime.fromisoformat(event["time"]).timestamp()
            handler = _HANDLERS.get(event["kind"])
            if handler is not None:
                handler(self, event, now)
                self.now = max(now, self.now or now)

    def host(self, event: Event) -> HostStory:
        """The host of an event. Raises KeyError or TypeError when it names none."""
        name = event["host"]
        if not isinstance(name, str):
            raise TypeError(name)
        return self.hosts.setdefault(name, HostStory(name))

    @property
    def wave(self) -> int | None:
        """The lowest wave that is not finished, counted from 0, the canaries'; None before and after them."""
        return next(
            (at for at, names in enumerate(self.waves) if any(self._is_open(name) for name in names)),
            None,
        )

    def _is_open(self, name: str) -> bool:
        return name in self.hosts and self.hosts[name].is_open

    @property
    def duration(self) -> float:
        """Seconds from the begin to the end, or to the newest event."""
        end = self.ended or self.now
        return max(0.0, end - self.began) if end is not None and self.began is not None else 0.0


def story_of(events: Iterable[Event]) -> Story:
    """The story of all these events."""
    story = Story()
    for event in events:
        story.take(event)
    return story


def _begin(story: Story, event: Event, now: float) -> None:
    story.began, story.who, story.what = now, str(event.get("who", "")), str(event.get("what", ""))
    for name in event.get("hosts", []):
        story.host({"host": name})


def _phase(story: Story, event: Event, now: float) -> None:
    story.phase = str(event["name"])
    if story.phases:
        story.waves, story.limits = [], {}
        story.marks.append((story.phase, now))
    story.phases.append((story.phase, now))


def _stage(story: Story, event: Event, now: float) -> None:
    host = story.host(event)
    host.state = STAGING
    changes = [str(text) for text in event.get("changes", [])]
    host.enter(STAGING, now, str(event.get("concern", "")))
    host.changes += changes
    host.said = changes[-1] if changes else host.said
    if event.get("diff"):
        host.diffs.append(str(event["diff"]))


def _job(story: Story, event: Event, now: float) -> None:
    host = story.host(event)
    job, title = str(event["job"]), str(event.get("title", ""))
    if event["state"] == "began":
        host.said = title
        host.enter(GOING_BACK if story.phase == BACKWARD else _phase_of(job), now, title)
    elif host.state == SWITCHING:
        host.enter(GOING_BACK if host.phase == GOING_BACK else PROVING, now)
    else:
        host.leave(now)


def _phase_of(job: str) -> str:
    if job.startswith(_DOWNLOADS):
        return DOWNLOADING
    return LOADING if job.startswith(("switch-", "wait-", "dockerd")) else STAGING


def _progress(story: Story, event: Event, now: float) -> None:
    host = story.host(event)
    host.said = str(event.get("text", ""))
    phase = str(event["phase"])
    if phase in PHASES and host.phase != GOING_BACK:
        host.enter(phase, now, host.spans[-1].text if host.phase == phase else "")
    part = event.get("part")
    host.part = min(1.0, max(0.0, float(part))) if part is not None else None


def _waves(story: Story, event: Event, now: float) -> None:
    waves = [[str(name) for name in names] for names in event["waves"]]
    forward = len(story.phases) <= 1
    for number, names in enumerate(waves):
        for name in names:
            host = story.host({"host": name})
            host.wave, host.state = number if forward else host.wave, WAITING
            host.said = f"waits for its turn: {wave_name(number)}"
            host.enter(WAITING, now)
    story.waves = waves
    story.limits = {
        domain: Limit(int(limit["limit"]), frozenset(limit["hosts"])) for domain, limit in event.get("down", {}).items()
    }


def _host(story: Story, event: Event, now: float) -> None:
    host, state = story.host(event), str(event["state"])
    if state == SWITCHING:
        _mark_wave(story, host, now)
        host.began, host.state = now, SWITCHING
        host.enter(PROVING, now, "what serves now is asked first")
        host.changes += [str(text) for text in event.get("changes", [])]
        if event.get("diff"):
            host.diffs.append(str(event["diff"]))
        return
    if host.state == SWITCHING and host.began is not None:
        host.took = max(0.0, now - host.began)
    host.state = TAKEN_BACK if state == "switched" and story.phase in (BACKWARD, BY_HAND) else state
    host.leave(now)
    if event.get("text"):
        host.said = str(event["text"]).splitlines()[0]
        _complain(host, str(event["text"]))


def _mark_wave(story: Story, host: HostStory, now: float) -> None:
    """Note the first switch of each wave; on the way back the waves are of no interest."""
    if host.wave is not None and len(story.phases) <= 1 and wave_name(host.wave) not in dict(story.marks):
        story.marks.append((wave_name(host.wave), now))


def wave_name(number: int) -> str:
    """`canaries`, `wave 1`, ..."""
    return f"wave {number}" if number else "canaries"


def _row(story: Story, event: Event, now: float) -> None:
    host = story.host(event)
    row = Row(
        str(event["row"]),
        str(event["mark"]),
        str(event.get("seen", "")),
        _number(event.get("figure")),
        str(event.get("before") or ""),
        _number(event.get("figure_before")),
    )
    if host.phase != GOING_BACK or story.phase == BACKWARD:
        # What the earlier release answers must not stand where the answers of the failed one are looked for.
        host.rows[row.name] = row
    host.said = f"{row.mark}: {row.name}: {row.seen}"
    if host.state == SWITCHING and host.phase != GOING_BACK:
        host.enter(PROVING, now)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _bake(story: Story, event: Event, now: float) -> None:
    story.bakes.append(Bake(int(event["wave"]), now, float(event["seconds"])))


def _failure(story: Story, event: Event, now: float) -> None:  # noqa: ARG001 - all handlers are called alike
    story.host(event)
    story.failures.append(event)


def _error(story: Story, event: Event, now: float) -> None:
    host, text = story.host(event), str(event["text"])
    host.said = (text.splitlines() or [""])[0]
    _complain(host, text)
    if host.state in (UNSEEN, STAGING, WAITING) and not text.startswith("not switched"):
        host.state = FAILED
        host.leave(now)


def _complain(host: HostStory, text: str) -> None:
    if text not in host.errors:
        host.errors.append(text)


def _log(story: Story, event: Event, now: float) -> None:  # noqa: ARG001 - all handlers are called alike
    story.host(event).logs.append(str(event["file"]))


def _end(story: Story, event: Event, now: float) -> None:
    story.ended, story.text = now, str(event.get("text", ""))
    story.status = int(event["status"])
    for host in story.hosts.values():
        host.leave(now)


_HANDLERS = {
    "begin": _begin,
    "phase": _phase,
    "stage": _stage,
    "job": _job,
    "progress": _progress,
    "waves": _waves,
    "host": _host,
    "row": _row,
    "bake": _bake,
    "failure": _failure,
    "error": _error,
    "log": _log,
    "end": _end,
}
