"""Draws how many times ours each tool costs over the number of hosts, as SVG that asks for nothing. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.peers.figures import Sitting, ratios

WIDTH, HEIGHT = 920, 380
PANEL, TOP, BOTTOM, LEFT, BETWEEN = 300, 56, 330, 60, 80
COLOURS = ("#c0392b", "#d68910", "#2471a3", "#148f77", "#111111", "#7d3c98", "#8d6e63")
STYLE = "text{font:13px sans-serif;fill:#222}.small{font-size:11px;fill:#555}.line{fill:none;stroke-width:2}"


@dataclass(frozen=True)
class Scale:
    """Values of a logarithmic axis to places on the picture."""

    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        """Where a value is drawn."""
        span = math.log(self.high / self.low) or 1.0
        return self.begin + (self.end - self.begin) * math.log(value / self.low) / span


def picture(sittings: Sequence[Sitting], base: str) -> str:
    """Return the whole picture: by the clock on the left, by CPU on the right."""
    return "".join(f"{element}\n" for element in _lines(sorted(sittings, key=lambda one: one.hosts), base))


def _lines(sittings: Sequence[Sitting], base: str) -> Iterator[str]:
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    yield f"<style>{STYLE}</style>"
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    for number, (key, title) in enumerate((("wall", "by the clock"), ("cpu", "by CPU of client and hosts"))):
        x_start = LEFT + number * (PANEL + BETWEEN)
        yield f'<text x="{x_start}" y="26">A converged run, {title}: times {base}</text>'
        yield from _panel({one.hosts: ratios(one, key, base) for one in sittings}, x_start)
    names = list(dict.fromkeys(name for one in sittings for name in one.figures))
    for number, name in enumerate(names):
        x, y = LEFT + 2 * PANEL + BETWEEN + 24, TOP + 10 + 22 * number
        yield f'<path class="line" stroke="{COLOURS[number]}" d="M{x} {y - 4}h18"/>'
        yield f'<text x="{x + 24}" y="{y}">{name}</text>'
    yield "</svg>"


def _panel(points: Mapping[int, Mapping[str, float]], x_start: float) -> Iterator[str]:
    values = [value for row in points.values() for value in row.values()]
    across = Scale(min(points), max(points), x_start, x_start + PANEL)
    up = Scale(*_decades(min(values), max(values)), BOTTOM, TOP)
    for tick in _ticks(up.low, up.high):
        y = up(tick)
        yield f'<path stroke="{"#888" if tick == 1 else "#ddd"}" d="M{x_start} {y:.1f}h{PANEL}"/>'
        yield f'<text class="small" text-anchor="end" x="{x_start - 6}" y="{y + 4:.1f}">{tick:g} x</text>'
    for hosts in points:
        yield f'<text class="small" text-anchor="middle" x="{across(hosts):.1f}" y="{BOTTOM + 18}">{hosts}</text>'
    yield f'<text class="small" text-anchor="middle" x="{x_start + PANEL / 2}" y="{BOTTOM + 36}">hosts</text>'
    names = list(dict.fromkeys(name for row in points.values() for name in row))
    for colour, name in zip(COLOURS, names, strict=False):
        path = [(across(hosts), up(row[name])) for hosts, row in points.items() if name in row]
        yield f'<path class="line" stroke="{colour}" d="M{" L".join(f"{x:.1f} {y:.1f}" for x, y in path)}"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in path)


def _decades(low: float, high: float) -> tuple[float, float]:
    """Powers of ten that hold both, and one times ours."""
    return 10.0 ** math.floor(math.log10(min(low, 1.0))), 10.0 ** math.ceil(math.log10(max(high, 10.0)))


def _ticks(low: float, high: float) -> list[float]:
    decades = range(round(math.log10(low)), round(math.log10(high)))
    return [*(step * 10.0**power for power in decades for step in (1, 2, 5)), high]
