"""One reading of a host between two of `rackwright status`: engines' counters, jobs, marks, watch. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rackwright.concerns.drained import MARK, Drained, parse_mark
from rackwright.concerns.lease import LEASE, SeenLease, parse_lease
from rackwright.concerns.marks import MARKS, Mark, parse_mark_file
from rackwright.concerns.watch.pause import Pause, parse_pause
from rackwright.messages import ReadingError, printable
from rackwright.paths import ACTS, ENGINE_STATES, ENGINES_PAUSED
from rackwright.plan.reading import decode, pairs

LONGEST = 300
"""Letters of a text of the host that are kept."""
HISTORY = "acts-"
"""The beginning of the names of files with what the watch did."""


@dataclass(frozen=True)
class EngineNow:
    """An engine as it answers. None: it shows no such figure."""

    code: int = 0
    """Of /health; 0 where nothing answered."""
    tokens: float | None = None
    """Made since its start."""
    running: int | None = None
    waiting: int | None = None


@dataclass(frozen=True)
class JobNow:
    """A job that runs on the host."""

    name: str
    seconds: float
    """Since its start."""
    text: str
    """Its last message about its progress."""


@dataclass(frozen=True)
class Act:
    """The last act of the watch on an endpoint."""

    time: int
    """Seconds since 1970, by the host's clock."""
    kind: str
    """restart, tell, sick or give-up"""
    text: str


@dataclass(frozen=True)
class HostSample:
    """One reading."""

    uptime: float
    engines: Mapping[str, EngineNow] = field(default_factory=dict)
    jobs: tuple[JobNow, ...] = ()
    marks: tuple[Mark, ...] = ()
    watch: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The findings of the host's own last look, by endpoint."""
    acts: Mapping[str, Act] = field(default_factory=dict)
    pause: Pause | None = None
    drained: Drained | None = None
    lease: SeenLease | None = None


def parse_sample(lines: Iterable[str]) -> HostSample:
    """Return a parsed reading. Raises ReadingError when it makes no sense."""
    rows = [row.split(" ") for row in lines]
    try:
        uptime = next(float(row[1]) for row in rows if row[0] == "uptime")
    except (StopIteration, ValueError, IndexError) as error:
        raise ReadingError("the host printed something unexpected", code="RW0802") from error
    texts = _files(rows)
    return HostSample(
        uptime,
        _engines(rows),
        tuple(job for row in rows if row[0] == "job" and (job := _job(row, uptime))),
        tuple(parse_mark_file(printable(name), text) for name, text in _in(texts, MARKS)),
        _states(texts),
        _acts(texts),
        parse_pause(texts.get(ENGINES_PAUSED, ""), uptime),
        parse_mark(texts.get(MARK)),
        SeenLease(0, int(uptime), parse_lease(texts.get(LEASE, ""))),
    )


def _files(rows: Iterable[Sequence[str]]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for row in rows:
        if row[0] == "file" and len(row) > 1:
            found.setdefault(row[1], []).append(" ".join(row[2:]))
    return {path: "\n".join(lines) for path, lines in found.items()}


def _in(texts: Mapping[str, str], folder: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each file of one folder."""
    for path, text in texts.items():
        parent, _, name = path.rpartition("/")
        if parent == folder and not name.startswith(HISTORY):
            yield name, text


def _states(texts: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
    return {
        printable(name): {key: printable(value)[:LONGEST] for key, value in pairs(text).items()}
        for name, text in _in(texts, ENGINE_STATES)
    }


def _acts(texts: Mapping[str, str]) -> dict[str, Act]:
    start = f"{ACTS}/{HISTORY}"
    found = {path.removeprefix(start): text.split(" ", 2) for path, text in texts.items() if path.startswith(start)}
    return {
        printable(name): Act(int(row[0][:12]), printable(row[1]), printable(row[2])[:LONGEST])
        for name, row in found.items()
        if len(row) > 2 and row[0].isdecimal()
    }


def _engines(rows: Iterable[Sequence[str]]) -> dict[str, EngineNow]:
    values: dict[str, dict[str, float]] = {}
    for row in rows:
        if row[0] == "engine" and len(row) == 4 and (figure := _figure(row[3])) is not None:
            values.setdefault(printable(row[1]), {})[row[2]] = figure
    return {name: _engine(one) for name, one in values.items()}


def _engine(values: Mapping[str, float]) -> EngineNow:
    running, waiting = (int(values[key]) if key in values else None for key in ("running", "waiting"))
    return EngineNow(int(values.get("code", 0)), values.get("tokens"), running, waiting)


def _figure(text: str) -> float | None:
    """Return a number that is not negative; None for all else."""
    try:
        figure = float(text)
    except ValueError:
        return None
    return figure if math.isfinite(figure) and 0 <= figure < 1e15 else None


def _job(row: Sequence[str], uptime: float) -> JobNow | None:
    began = _figure(row[2]) if len(row) > 2 else None
    if began is None:
        return None
    return JobNow(printable(row[1]), max(0.0, uptime - began), _progress(row[3] if len(row) > 3 else ""))


def _progress(encoded: str) -> str:
    try:
        return printable(decode(encoded).strip())[:LONGEST]
    except ReadingError:
        return ""
