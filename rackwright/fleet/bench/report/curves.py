"""Throughput against latency: one line a set of requests, one dot a pattern of arrival. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rackwright.fleet.bench.figures.figures import Measured
from rackwright.fleet.bench.report.shapes import FAINT, Dot, Picture, Polyline, Shape, Words

WIDTH, HEIGHT, LEFT, BELOW, LEGEND, ABOVE = 720, 360, 64, 44, 150, 32
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Okabe and Ito's: told apart by everybody."""
TICKS = 5

Point = tuple[float, float, str]
"""Tokens a second, milliseconds, and what the dot is."""
Most = tuple[float, float]
"""The largest of each that the picture must hold."""


def curves(cells: Mapping[str, Measured], latency: str, percentile: int, title: str) -> Picture:
    """The picture of all cells that have figures; latency: `ttft`, `itl` or `latency`."""
    lines: dict[str, list[Point]] = {}
    for name, cell in cells.items():
        if cell.requests and not cell.failed:
            dataset, _, arrival = name.rpartition(".")
            lines.setdefault(dataset, []).append((cell.output_rate, cell.at(latency, percentile), arrival))
    points = [point for own in lines.values() for point in own]
    most = (max((one[0] for one in points), default=1.0) or 1.0, max((one[1] for one in points), default=1.0) or 1.0)
    return Picture(latency, title, WIDTH, HEIGHT, (*_axes(most, title), *_drawn(lines, most)))


def _place(point: tuple[float, float] | Point, most: Most) -> tuple[float, float]:
    wide, high = WIDTH - LEFT - LEGEND, HEIGHT - BELOW - ABOVE
    return LEFT + wide * point[0] / most[0], HEIGHT - BELOW - high * point[1] / most[1]


def _axes(most: Most, title: str) -> Iterator[Shape]:
    yield Words(LEFT, 18, title, bold=True)
    for part in range(TICKS + 1):
        share = part / TICKS
        x, y = _place((share * most[0], share * most[1]), most)
        foot = HEIGHT - BELOW
        yield Polyline(((LEFT, y), (WIDTH - LEGEND, y)), FAINT)
        yield Polyline(((x, foot), (x, foot + 4)), FAINT)
        yield Words(LEFT - 6, y + 4, f"{share * most[1]:.4g}", "end")
        yield Words(x, foot + 18, f"{share * most[0]:.4g}", "middle")
    yield Words(LEFT, HEIGHT - 8, "output tokens a second; upward: milliseconds")


def _drawn(lines: Mapping[str, Sequence[Point]], most: Most) -> Iterator[Shape]:
    for number, (name, points) in enumerate(lines.items()):
        colour, ordered = COLOURS[number % len(COLOURS)], sorted(points)
        yield Polyline(tuple(_place(point, most) for point in ordered), colour)
        for point in ordered:
            title = f"{name}.{point[2]}: {point[0]:.4g} tokens/s, {point[1]:.4g} ms"
            yield Dot(*_place(point, most), colour, title)
        yield Words(WIDTH - LEGEND + 10, 40 + 18 * number, name, colour=colour)
