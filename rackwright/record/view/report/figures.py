"""A timeline in the report, as plain values: bars, sums of the gate's rows, and equal changes once. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from rackwright.record.view.blame import BAD, GOOD, WARN, clock, worst_first
from rackwright.record.view.timeline import AskedRow, HostTimeline, Span, Timeline

UNITS = {
    "speed": (1000.0, " ms a token"),
    "accepted drafts": (1.0, " tokens a step"),
    "quality of answers": (100.0, " % right"),
    "beside its peers": (1000.0, " ms a token"),
}
"""Factor and unit by which people read the figures of a row."""
MARKS = {"proved": GOOD, "refused": BAD, "warning": WARN, "not measured": WARN}
THIN = 0.002
"""Part of the run's time below which a bar is left out: it could not be seen."""
TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400)
LANES, CHARACTER = 3, 1.0
"""Lines for the labels of waves, and the width of a character in percent of a narrow window's track."""

_OWN_WORDS = re.compile(r"GPU-[0-9a-fA-F-]{36}|(?<=release )[0-9a-f]{12}\b")


@dataclass(frozen=True)
class Bar:
    """One phase of a host in the timeline; `offset` and `width` are percentages of the run's time."""

    phase: str
    offset: float
    width: float
    title: str

    @property
    def css(self) -> str:
        """Name of the phase's class."""
        return self.phase.replace(" ", "-")


def bars(timeline: Timeline, host: HostTimeline) -> list[Bar]:
    """Return the bars of a host; neighbours of one phase are drawn as one."""
    if timeline.began is None or timeline.duration <= 0:
        return []
    end, whole = timeline.began + timeline.duration, timeline.duration
    found = []
    for span in _joined(host.spans):
        start, stop = max(span.start, timeline.began), min(span.end or end, end)
        if stop - start >= THIN * whole:
            offset, width = 100 * (start - timeline.began) / whole, 100 * (stop - start) / whole
            found.append(Bar(span.phase, round(offset, 2), round(width, 2), _title(span, stop - start)))
    return found


def _joined(spans: Iterable[Span]) -> list[Span]:
    found: list[Span] = []
    for span in spans:
        last = found[-1] if found else None
        if last is not None and last.phase == span.phase and last.end is not None and span.start - last.end < 1:
            found[-1] = Span(last.phase, last.start, span.end, last.text)
        else:
            found.append(span)
    return found


def _title(span: Span, seconds: float) -> str:
    return f"{span.phase} {clock(seconds)}" + (f": {span.text}" if span.text else "")


def ticks(timeline: Timeline) -> list[tuple[float, str]]:
    """Return marks of the time axis: percentage of the run's time, and the time since its begin."""
    whole = timeline.duration
    step = next((step for step in TICKS if whole / step <= 8), max(TICKS[-1], int(whole / 8)))
    return [(round(100 * at / whole, 2), clock(at)) for at in range(0, int(whole) + 1, step)] if whole > 0 else []


@dataclass(frozen=True)
class WaveMark:
    """The begin of a wave's switches, or of a run's way back, as a percentage of the run's time."""

    offset: float
    name: str
    lane: int | None
    """The row of its label, counted from the top; None where no row has room for it."""


def wave_marks(timeline: Timeline) -> list[WaveMark]:
    """Return the marks of the time axis; labels that would cover each other get rows of their own."""
    if timeline.began is None or timeline.duration <= 0:
        return []
    places = [(round(100 * (at - timeline.began) / timeline.duration, 2), name) for name, at in timeline.marks]
    found, ends = list[WaveMark](), [0.0] * LANES
    for offset, name in sorted(places):
        if 0 <= offset <= 100:
            lane = next((lane for lane, end in enumerate(ends) if end <= offset), None)
            if lane is not None:
                ends[lane] = offset + (len(name) + 1) * CHARACTER
            found.append(WaveMark(offset, name, lane))
    return found


# -- the gate


@dataclass(frozen=True)
class RowSum:
    """One question of the gate to one endpoint over all hosts."""

    name: str
    endpoint: str
    """Empty where the run asked one endpoint only."""
    marks: tuple[tuple[str, str, int], ...]
    """Mark, tone, and how many hosts it was given to."""
    now: str
    before: str
    change: str
    worst: tuple[tuple[str, AskedRow], ...]
    """Hosts whose answer was not `proved`, with it."""


def row_sums(timeline: Timeline) -> list[RowSum]:
    """Return every question of the gate, in the order in which they were asked first."""
    several = len(timeline.endpoints) > 1
    keys = dict.fromkeys(key for host in timeline.hosts.values() for key in host.rows)
    return [_row_sum(name, endpoint, timeline, several) for endpoint, name in keys]


def _row_sum(name: str, endpoint: str, timeline: Timeline, several: bool) -> RowSum:
    key = endpoint, name
    rows = [(host.name, host.rows[key]) for host in worst_first(timeline) if key in host.rows]
    counts = Counter(row.mark for _, row in rows)
    marks = tuple((mark, MARKS.get(mark, WARN), count) for mark, count in counts.items())
    now = [row.figure for _, row in rows if row.figure is not None]
    before = [row.figure_before for _, row in rows if row.figure_before is not None]
    worst = tuple((host, row) for host, row in rows if row.mark != "proved")
    earlier = _spread(name, before) or _same([row.before for _, row in rows if row.before])
    return RowSum(
        name, endpoint if several else "", marks, _spread(name, now), earlier, _growth(name, now, before), worst
    )


def _same(answers: list[str]) -> str:
    """Return what the release before answered in words."""
    each = set(answers)
    return answers[0] if len(each) == 1 else f"{len(each)} different answers" if each else ""


def _spread(name: str, figures: list[float]) -> str:
    if not figures:
        return ""
    low, middle, high = min(figures), median(figures), max(figures)
    many = "" if low == high else f" ({figure(name, low)} to {figure(name, high)})"
    return f"{figure(name, middle)}{UNITS.get(name, (1.0, ''))[1]}{many}"


def figure(name: str, value: float) -> str:
    """Return a figure of a row, in the unit that people read it in."""
    return number(value * UNITS.get(name, (1.0, ""))[0])


def _growth(name: str, now: list[float], before: list[float]) -> str:
    if not now or not before:
        return ""
    new, old = median(now), median(before)
    if new == old:
        return "none"
    if old == 0:
        return f"{'+' if new > 0 else ''}{figure(name, new)}"
    percent = round(100 * (new / old - 1))
    return f"{percent:+} %" if percent else "0 %"


def number(value: float) -> str:
    """Return three figures that matter, without an exponent where people would not expect one."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.3g}" if 1e-4 <= abs(value) < 1e6 else f"{value:.2e}"


# -- changes


@dataclass(frozen=True)
class Changed:
    """Hosts whose changes and diffs are the same but for their own GPUs and releases."""

    hosts: tuple[str, ...]
    changes: tuple[str, ...]
    diff: tuple[tuple[str, str], ...]
    """Lines with their class: added, removed, where, or empty."""


def changed(timeline: Timeline) -> list[Changed]:
    """Return what changed, equal things once, those of most hosts first."""
    found: dict[tuple[tuple[str, ...], str], list[HostTimeline]] = {}
    for host in timeline.hosts.values():
        if host.changes:
            diff = "\n".join(dict.fromkeys(_general(text) for text in host.diffs))
            found.setdefault((tuple(dict.fromkeys(map(_general, host.changes))), diff), []).append(host)
    groups = [
        Changed(tuple(host.name for host in hosts), changes, tuple(map(_diff_line, diff.splitlines())))
        for (changes, diff), hosts in found.items()
    ]
    return sorted(groups, key=lambda group: -len(group.hosts))


def _general(text: str) -> str:
    return _OWN_WORDS.sub("…", text)


def _diff_line(text: str) -> tuple[str, str]:
    if text.startswith(("+++", "---", "@@")):
        return text, "where"
    return text, {"+": "added", "-": "removed"}.get(text[:1], "")
