"""What a load and a run's record say together: who failed while not switching, and how many were down at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rackwright.record.states import RunState

SLACK = 1.0
"""Seconds: a request that began just before the switch may get no answer."""


@dataclass(frozen=True)
class LoadRequest:
    """One request: its endpoint, its beginning and end (epoch seconds), and what was wrong with its answer."""

    host: str
    start: float
    end: float
    wrong: str


@dataclass(frozen=True)
class Span:
    """A time from and to (epoch seconds) on one host."""

    host: str
    start: float
    end: float


def read_load(path: Path) -> list[LoadRequest]:
    """Every request of a load."""
    return [LoadRequest(**json.loads(row)) for row in path.read_text().splitlines() if row.endswith("}")]


def switching(events: Iterable[dict[str, Any]]) -> list[Span]:
    """When each host was switching, forward or back, as the run's record has it.

    A host that failed after its switch counts as switching until it has rolled back: what died there had been proven.
    """
    open_spans: dict[str, float] = {}
    ended: dict[str, float] = {}
    spans = []
    for event in events:
        if event["kind"] != "host":
            continue
        host, time = event["host"], datetime.fromisoformat(event["time"]).timestamp()
        if event["state"] == "switching":
            open_spans.setdefault(host, time)
        elif event["state"] == RunState.AFTERWARDS:
            open_spans[host] = ended.get(host, time)
        elif host in open_spans:
            spans.append(Span(host, open_spans.pop(host), time))
            ended[host] = time
    return spans + [Span(host, start, float("inf")) for host, start in open_spans.items()]


def failed_outside(requests: Sequence[LoadRequest], spans: Sequence[Span]) -> list[LoadRequest]:
    """Find requests that failed on a host that was not switching."""
    return [one for one in requests if one.wrong and not any(_overlap(one, span) for span in spans)]


def _overlap(one: LoadRequest, span: Span) -> bool:
    return one.host == span.host and one.start <= span.end + SLACK and one.end >= span.start - SLACK


def most_down(requests: Sequence[LoadRequest]) -> int:
    """Return the largest number of hosts that refused or failed at the same moment, as clients saw it."""
    edges = [edge for span in _dark(requests) for edge in ((span.start, 1), (span.end, -1))]
    down = most = 0
    for _, step in sorted(edges):
        down += step
        most = max(most, down)
    return most


def _dark(requests: Sequence[LoadRequest]) -> list[Span]:
    """Each row of failures on one host, from the beginning of its first to the end of its last."""
    spans: list[Span] = []
    for host in {one.host for one in requests}:
        failing: list[LoadRequest] = []
        for one in sorted((one for one in requests if one.host == host), key=lambda one: one.start):
            if one.wrong:
                failing.append(one)
            elif failing:
                spans.append(Span(host, failing[0].start, failing[-1].end))
                failing = []
        if failing:
            spans.append(Span(host, failing[0].start, failing[-1].end))
    return spans
