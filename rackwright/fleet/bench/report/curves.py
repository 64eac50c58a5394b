"""Throughput against latency: a dot a cell with its name, and a line through the dots of one axis of load. Pure.

Cells that differ in their requests at once alone are one axis, and those that differ in their rate alone; bursts and
single requests between them are no steps of either, and no line joins them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rackwright.fleet.bench.figures.figures import Measured
from rackwright.fleet.bench.report.shapes import FAINT, Dot, Picture, Polyline, Shape, Words

WIDTH, HEIGHT, LEFT, BELOW, LEGEND, ABOVE = 720, 360, 64, 44, 150, 32
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Okabe and Ito's: told apart by everybody."""
TICKS = 5
"""About as many steps has an axis."""
LETTER, LINE = 6.5, 13
"""Width of a letter beside a dot, and height of a line of them."""
BELOW_DOT = (-7, 17, -21, 31)
"""Where a dot's name may stand, in pixels below the dot; the first that is free counts."""

Most = tuple[float, float]
"""The largest tokens a second and milliseconds that the picture must hold."""


@dataclass(frozen=True)
class Point:
    """One cell: what it is, where on its axis of load, and what came of it."""

    arrival: str
    axis: tuple[object, ...]
    load: float
    rate: float
    """Output tokens a second."""
    latency: float
    """Milliseconds."""


def curves(
    cells: Mapping[str, Measured], arrivals: Mapping[str, Mapping[str, Any]], latency: str, percentile: int, title: str
) -> Picture:
    """Return the picture of all cells that have figures.

    arrivals: the suite's patterns by name. latency: `ttft`, `itl` or `latency`.
    """
    lines: dict[str, list[Point]] = {}
    for name, cell in cells.items():
        if cell.requests and not cell.failed:
            dataset, _, arrival = name.rpartition(".")
            axis = _axis(arrival, arrivals.get(arrival, {}))
            lines.setdefault(dataset, []).append(Point(arrival, *axis, cell.output_rate, cell.at(latency, percentile)))
    points = [point for some in lines.values() for point in some]
    most = _most(point.rate for point in points), _most(point.latency for point in points)
    return Picture(latency, title, WIDTH, HEIGHT, (*_axes(most, title), *_drawn(lines, most)))


def _axis(name: str, arrival: Mapping[str, Any]) -> tuple[tuple[object, ...], float]:
    """Return the axis that a pattern is a step of, and how far along it."""
    if not arrival:
        return (name,), 0.0
    if arrival.get("rate") is None:
        return ("at once",), float(arrival["concurrency"])
    return ("rate", arrival.get("burstiness")), float(arrival["rate"])


def _step(most: float) -> float:
    """Return a round step: 1, 2 or 5 times a power of ten."""
    rough = most / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(times * power for times in (1, 2, 5, 10) if times * power >= rough * 0.999)


def _most(values: Iterator[float]) -> float:
    """Return the end of an axis: the first tick that none of the values passes."""
    most = max(values, default=0.0) or 1.0
    step = _step(most)
    return math.ceil(most / step - 1e-9) * step


def _place(rate: float, latency: float, most: Most) -> tuple[float, float]:
    wide, high = WIDTH - LEFT - LEGEND, HEIGHT - BELOW - ABOVE
    return LEFT + wide * rate / most[0], HEIGHT - BELOW - high * latency / most[1]


def _axes(most: Most, title: str) -> Iterator[Shape]:
    yield Words(LEFT, 18, title, bold=True)
    foot = HEIGHT - BELOW
    for value in _ticks(most[1]):
        _, y = _place(0, value, most)
        yield Polyline(((LEFT, y), (WIDTH - LEGEND, y)), FAINT)
        yield Words(LEFT - 6, y + 4, f"{value:g}", "end")
    for value in _ticks(most[0]):
        x, _ = _place(value, 0, most)
        yield Polyline(((x, foot), (x, foot + 4)), FAINT)
        yield Words(x, foot + 18, f"{value:g}", "middle")
    yield Words((LEFT + WIDTH - LEGEND) / 2, HEIGHT - 8, "output tokens a second", "middle")


def _ticks(most: float) -> Iterator[float]:
    step = _step(most)
    yield from (round(number * step, 12) for number in range(round(most / step) + 1))


def _drawn(lines: Mapping[str, Sequence[Point]], most: Most) -> Iterator[Shape]:
    taken: list[tuple[float, float, float]] = []
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        yield from _joined(points, most, colour)
        for point in points:
            x, y = _place(point.rate, point.latency, most)
            title = f"{name}.{point.arrival}: {point.rate:.4g} tokens/s, {point.latency:.4g} ms"
            yield Dot(x, y, colour, title)
            yield _named(point.arrival, x, y, colour, taken)
        yield Words(WIDTH - LEGEND + 10, 40 + 18 * number, name, colour=colour)


def _joined(points: Sequence[Point], most: Most, colour: str) -> Iterator[Polyline]:
    axes: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        axes.setdefault(point.axis, []).append(point)
    for steps in axes.values():
        if len(steps) > 1:
            ordered = sorted(steps, key=lambda point: point.load)
            yield Polyline(tuple(_place(point.rate, point.latency, most) for point in ordered), colour)


def _named(text: str, x: float, y: float, colour: str, taken: list[tuple[float, float, float]]) -> Words:
    """Put a dot's name beside it, inside the picture and over no other one as far as there is room. taken: grows."""
    wide = LETTER * len(text)
    start = x - 6 - wide if x + 6 + wide > WIDTH - LEGEND else x + 6
    spots = [min(HEIGHT - BELOW - 3.0, max(ABOVE, y + below)) for below in BELOW_DOT]
    free = [foot for foot in spots if not any(_touch((start, foot, wide), other) for other in taken)]
    foot = (free or spots)[0]
    taken.append((start, foot, wide))
    return Words(max(0.0, start), foot, text, colour=colour)


def _touch(one: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    beside = one[0] + one[2] < other[0] or other[0] + other[2] < one[0]
    return not beside and abs(one[1] - other[1]) < LINE
