"""The fleet as rows, the worst first; rows that say the same are one where a terminal has no room for all. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rackwright.concerns.lease import whose
from rackwright.concerns.marks import QUARANTINE, TRIAL, Mark
from rackwright.inspect.status.rows import GATEWAY, UNKNOWN, StatusRow
from rackwright.inspect.top.fleet import OK, HostNow, engine_of, rate
from rackwright.inspect.top.host_sample import HostSample, JobNow
from rackwright.paths import ENDPOINT_JOBS, endpoint_job
from rackwright.record.progress import DOWNLOADING, parse_line
from rackwright.record.view.blame import BAD, BUSY, GOOD, IDLE, RANK, WARN, clock
from rackwright.record.view.timeline_events import phase_of_job

CONNECTING, LOST, SILENT, UNANSWERED, EMPTY = "connecting", "lost", "silent", "no answer", "no endpoint"
TONES = {
    "serving": GOOD,
    "no host": WARN,
    "loading": BUSY,
    "absent": IDLE,
    CONNECTING: IDLE,
    "drained": WARN,
    "stalled": WARN,
    SILENT: WARN,
    "stopped": WARN,
}
"""Tone of each state; one that is not here is bad."""
WATCHED_BAD = ("hung", "dead", "stalled")
"""States of the host's own watch that say more than a /health of 200."""
CLEARED = "clear"
"""The kind of a row of the watch's history after which its earlier acts no longer count."""
RECENT = 24 * 3600
"""Seconds for which an act of the watch is shown."""


@dataclass(frozen=True)
class Fact:
    """Something that a host does, or that was done to it."""

    kind: str
    """Equal on hosts that may share a row."""
    text: str
    tone: str = IDLE


@dataclass(frozen=True)
class TopRow:
    """One endpoint of one host, or of several hosts that say the same. None: no such figure."""

    hosts: tuple[str, ...]
    endpoint: str
    state: str
    tone: str
    release: str = ""
    rate: float | None = None
    running: int | None = None
    waiting: int | None = None
    facts: tuple[Fact, ...] = ()

    @property
    def likeness(self) -> object:
        """Equal for rows that can be one."""
        return self.endpoint, self.state, self.release, tuple(fact.kind for fact in self.facts)


def rows_of(fleet: Iterable[HostNow], now: float, time: datetime) -> list[TopRow]:
    """Return a row for each endpoint of each host: worst first, then in the inventory's order.

    now: this machine's monotonic clock. time: its time, with a zone.
    """
    return sorted((row for host in fleet for row in _host_rows(host, now, time)), key=_rank)


def _rank(row: TopRow) -> tuple[int, int]:
    worst = min((RANK.index(tone) for tone in (row.tone, *(fact.tone for fact in row.facts))), default=len(RANK))
    return RANK.index(row.tone), worst


def _host_rows(host: HostNow, now: float, time: datetime) -> Iterator[TopRow]:
    if host.trouble:
        yield TopRow((host.name,), "", LOST, BAD, facts=(Fact("trouble", host.trouble, BAD),))
    elif host.status_at is None:
        yield TopRow((host.name,), "", CONNECTING, IDLE)
    elif not host.rows:
        yield TopRow((host.name,), "", EMPTY, IDLE, facts=tuple(_host_facts(host, time)))
    else:
        shared = list(_host_facts(host, time))
        for row in host.rows:
            yield _endpoint_row(host, row, shared, now)


def _endpoint_row(host: HostNow, row: StatusRow, shared: Sequence[Fact], now: float) -> TopRow:
    if row.endpoint == UNKNOWN:
        return TopRow((host.name,), "", "unknown", BAD, facts=(Fact("trouble", row.health, BAD), *shared))
    if row.endpoint == GATEWAY:
        facts = [Fact("address", f"has {row.address}", WARN if row.note else IDLE)] if row.address else []
        facts += [Fact("note", row.note, WARN)] if row.note else []
        return TopRow((host.name,), GATEWAY, row.health, TONES.get(row.health, BAD), facts=(*facts, *shared))
    engine, seconds = engine_of(host, row.endpoint), host.silent_for(now)
    working = next(_jobs(host, row.endpoint), None)
    state = working.kind if working else _state(host, row, engine.code)
    tone = BUSY if working else TONES.get(state, BAD)
    if seconds and tone != BAD:  # what is bad stays named: an engine that does not answer makes a reading slow
        state, tone = SILENT, WARN
    facts = [Fact("silent", f"no reading for {clock(round(seconds))}", WARN)] if seconds else []
    facts += [*_endpoint_facts(host, row), *shared]
    return TopRow(
        (host.name,),
        row.endpoint,
        state,
        tone,
        row.release or "",
        rate(host, row.endpoint),
        engine.running,
        engine.waiting,
        tuple(facts),
    )


def _state(host: HostNow, row: StatusRow, code: int) -> str:
    """Return what an endpoint does: what the watch says of it, what a look saw since the last status, or the status."""
    watched = host.sample.watch.get(row.endpoint, {}).get("state", "") if host.sample else ""
    if watched in WATCHED_BAD and row.health in ("serving", "sick"):
        return watched
    answers = not row.head or row.head == host.name
    if row.serving and answers and host.sample and row.endpoint in host.sample.engines and code != OK:
        return UNANSWERED
    return row.health


def _jobs(host: HostNow, endpoint: str) -> Iterator[Fact]:
    """Yield the running jobs of an endpoint."""
    names = {endpoint_job(kind, endpoint) for kind in ENDPOINT_JOBS}
    yield from (_job_fact(job) for job in (host.sample.jobs if host.sample else ()) if job.name in names)


def _endpoint_facts(host: HostNow, row: StatusRow) -> Iterator[Fact]:
    """Yield what concerns one endpoint alone, the most urgent first."""
    look = host.sample
    yield from _jobs(host, row.endpoint)
    yield from (_mark_fact(mark) for mark in (look.marks if look else ()) if mark.endpoint == row.endpoint)
    watched = look.watch.get(row.endpoint, {}) if look else {}
    if watched.get("state") in WATCHED_BAD:
        yield Fact("signs", watched.get("signs") or "the watch sees it", WARN)
    if watched.get("would"):
        yield Fact("would", f"the watch would {watched['would']} it (watch.act: tell)", WARN)
    if row.moved:
        yield Fact("moved", f"moved: {row.moved[0]}", WARN)
    if row.wanted is False and row.release:
        yield Fact("behind", "the settings ask for another release")
    if row.note:
        yield Fact("note", row.note, WARN)


def _host_facts(host: HostNow, time: datetime) -> Iterator[Fact]:
    """Yield what concerns the host as a whole."""
    look = host.sample
    if look is None:
        return
    of_endpoints = {endpoint_job(kind, row.endpoint) for row in host.rows for kind in ENDPOINT_JOBS}
    yield from (_job_fact(job) for job in look.jobs if job.name not in of_endpoints)
    if look.drained:
        yield Fact("drained", str(look.drained), WARN)
    marks = [mark for mark in look.marks if not mark.endpoint]
    yield from map(_mark_fact, marks)
    if host.quarantine and QUARANTINE not in [mark.name for mark in marks]:
        yield Fact(QUARANTINE, f"in quarantine: {host.quarantine}", WARN)
    yield from _act_facts(look, time)
    if look.pause:
        yield Fact("paused", str(look.pause))
    if look.lease and look.lease.live:
        yield Fact("lease", f"lease: {whose(look.lease, time)}", BUSY)


def _job_fact(job: JobNow) -> Fact:
    """Return a running job in the words of the rollout's live view."""
    progress = parse_line(job.text)
    phase = progress.phase if progress else DOWNLOADING if _fetches(job.name) else phase_of_job(job.name)
    part = f" {100 * progress.part:.0f} %" if progress and progress.part is not None else ""
    return Fact(phase, f"{phase}{part}, {clock(round(job.seconds))}: {job.text or job.name}", BUSY)


def _fetches(job: str) -> bool:
    return job.startswith(("pull-", "model-", "fetch-"))


def _mark_fact(mark: Mark) -> Fact:
    kind = {TRIAL: "on trial", "watch": "restarted by the watch", QUARANTINE: "in quarantine"}.get(mark.kind, mark.kind)
    tone = {"sick": BAD, TRIAL: BUSY}.get(mark.kind, WARN)
    return Fact(mark.kind, f"{kind} since {mark.since} UTC by {mark.who}: {mark.reason}", tone)


def _act_facts(look: HostSample, time: datetime) -> Iterator[Fact]:
    for endpoint, act in look.acts.items():
        if act.kind != CLEARED and 0 <= time.timestamp() - act.time < RECENT:
            at = f"{datetime.fromtimestamp(act.time, UTC):%H:%M} UTC"
            yield Fact(f"act {act.kind}", f"watch, {at}: {act.kind} of {endpoint}: {act.text}", WARN)


def merged(rows: Sequence[TopRow]) -> list[TopRow]:
    """Return the rows with those that say the same as one, in the order of the first of each."""
    found: dict[object, list[TopRow]] = {}
    for row in rows:
        found.setdefault(row.likeness, []).append(row)
    return [_sum(alike) for alike in found.values()]


def _sum(rows: Sequence[TopRow]) -> TopRow:
    first = rows[0]
    if len(rows) == 1:
        return first
    facts = (
        fact if all(row.facts[n].text == fact.text for row in rows) else Fact(fact.kind, fact.kind, fact.tone)
        for n, fact in enumerate(first.facts)
    )
    return TopRow(
        tuple(host for row in rows for host in row.hosts),
        first.endpoint,
        first.state,
        first.tone,
        first.release,
        total([row.rate for row in rows]),
        whole(total([row.running for row in rows])),
        whole(total([row.waiting for row in rows])),
        tuple(facts),
    )


def total(figures: Iterable[float | None]) -> float | None:
    """Return the sum of the figures that are there; None without one."""
    present = [figure for figure in figures if figure is not None]
    return sum(present) if present else None


def whole(figure: float | None) -> int | None:
    """Return a figure as a whole number."""
    return None if figure is None else int(figure)
