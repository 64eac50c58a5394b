"""Throughput against latency: a point a cell with its name, and a line through the steps of one axis of load. Pure.

Cells that differ in their concurrency alone are one axis, and those that differ in their rate alone; bursts and single
requests between them are not steps of either, and no line joins them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rackwright_bench.figures.figures import Measured

Axis = tuple[object, ...]


@dataclass(frozen=True)
class Point:
    """One cell: its pattern of arrival and its figures."""

    arrival: str
    rate: float
    """Output tokens a second."""
    latency: float
    """Milliseconds."""


@dataclass(frozen=True)
class Series:
    """All cells of one set of requests."""

    dataset: str
    points: tuple[Point, ...]
    lines: tuple[tuple[Point, ...], ...]
    """Points of one axis of load, the lightest load first."""


@dataclass(frozen=True)
class Curves:
    """One picture. latency: the label of its upright axis."""

    name: str
    """Of its file."""
    latency: str
    series: tuple[Series, ...]


def curves(
    cells: Mapping[str, Measured], arrivals: Mapping[str, Mapping[str, Any]], latency: str, percentile: int, label: str
) -> Curves:
    """Return the picture of all cells that have figures.

    arrivals: the suite's patterns by name. latency: `ttft`, `itl` or `latency`.
    """
    found: dict[str, list[tuple[Axis, float, Point]]] = {}
    for name, cell in cells.items():
        if cell.requests and not cell.failed:
            dataset, _, arrival = name.rpartition(".")
            point = Point(arrival, cell.output_rate, cell.at(latency, percentile))
            found.setdefault(dataset, []).append((*_axis(arrival, arrivals.get(arrival, {})), point))
    series = (Series(name, tuple(point for *_, point in rows), tuple(_lines(rows))) for name, rows in found.items())
    return Curves(latency, label, tuple(series))


def _axis(name: str, arrival: Mapping[str, Any]) -> tuple[Axis, float]:
    """Return the axis that a pattern is a step of, and its load there."""
    if not arrival:
        return (name,), 0.0
    if arrival.get("rate") is None:
        return ("concurrency",), float(arrival["concurrency"])
    return ("rate", arrival.get("burstiness")), float(arrival["rate"])


def _lines(rows: Sequence[tuple[Axis, float, Point]]) -> Iterator[tuple[Point, ...]]:
    for axis in dict.fromkeys(axis for axis, *_ in rows):
        steps = sorted((row[1:] for row in rows if row[0] == axis), key=lambda step: step[0])
        if len(steps) > 1:
            yield tuple(point for _, point in steps)
