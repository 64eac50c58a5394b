"""Throughput against latency as SVG: one line a set of requests, one dot a pattern of arrival. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from rackwright.fleet.bench.figures.figures import Measured

WIDTH, HEIGHT, LEFT, BELOW = 720, 360, 64, 44
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Okabe and Ito's: told apart by everybody."""
TICKS = 5

Point = tuple[float, float, str]
"""Tokens a second, milliseconds, and what the dot is."""


def curves(cells: Mapping[str, Measured], latency: str, percentile: int, title: str) -> str:
    """The picture of all cells that have figures; latency: `ttft`, `itl` or `latency`."""
    lines: dict[str, list[Point]] = {}
    for name, cell in cells.items():
        if cell.requests and not cell.failed:
            dataset, _, arrival = name.rpartition(".")
            lines.setdefault(dataset, []).append((cell.output_rate, cell.at(latency, percentile), arrival))
    points = [point for own in lines.values() for point in own]
    most = (max((one[0] for one in points), default=1.0) or 1.0, max((one[1] for one in points), default=1.0) or 1.0)
    body = "".join([*_axes(most, title), *_drawn(lines, most)])
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
    named = f'font-size="12" role="img" aria-label="{escape(title)}"'
    return f'{head}{named}><rect width="100%" height="100%" fill="#fff"/>{body}</svg>'


def _place(point: tuple[float, float] | Point, most: tuple[float, float]) -> tuple[float, float]:
    wide, high = WIDTH - LEFT - 150, HEIGHT - BELOW - 32
    return LEFT + wide * point[0] / most[0], HEIGHT - BELOW - high * point[1] / most[1]


def _axes(most: tuple[float, float], title: str) -> Iterator[str]:
    yield f'<text x="{LEFT}" y="18" font-weight="bold">{escape(title)}</text>'
    for part in range(TICKS + 1):
        share = part / TICKS
        x, y = _place((share * most[0], share * most[1]), most)
        yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - 150}M{x:.1f} {HEIGHT - BELOW}v4" stroke="#ddd" fill="none"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{share * most[1]:.4g}</text>'
        yield f'<text x="{x:.1f}" y="{HEIGHT - BELOW + 18}" text-anchor="middle">{share * most[0]:.4g}</text>'
    yield f'<text x="{LEFT}" y="{HEIGHT - 8}">output tokens a second; upward: milliseconds</text>'


def _drawn(lines: Mapping[str, Sequence[Point]], most: tuple[float, float]) -> Iterator[str]:
    for number, (name, points) in enumerate(lines.items()):
        colour, ordered = COLOURS[number % len(COLOURS)], sorted(points)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (_place(point, most) for point in ordered))
        yield f'<polyline points="{path}" fill="none" stroke="{colour}"/>'
        for point in ordered:
            x, y = _place(point, most)
            told = f"{name}.{point[2]}: {point[0]:.4g} tokens/s, {point[1]:.4g} ms"
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"><title>{escape(told)}</title></circle>'
        high = 40 + 18 * number
        yield f'<text x="{WIDTH - 140}" y="{high}" fill="{colour}">{escape(name)}</text>'
