"""Draws how long each host waited for its file, by engine, as SVG that asks for nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from bench.peers.plot import COLOURS, STYLE, Scale
from bench.supply.cells import Result
from bench.supply.report import Row, by_link

PANEL, TOP, BOTTOM, LEFT, BETWEEN, LEGEND, HEIGHT = 300, 56, 330, 60, 80, 180, 380
TICKS = (1, 1.15, 1.5, 2, 3, 4, 6, 8, 16, 32, 64)


def picture(results: Sequence[Result]) -> str:
    """Return the whole picture: a panel for each link; hosts in the order in which they had it, times one host's."""
    return "".join(f"{element}\n" for element in _elements(results))


def _elements(results: Sequence[Result]) -> Iterator[str]:
    panels = by_link(results)
    width = LEFT + len(panels) * (PANEL + BETWEEN) + LEGEND
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" role="img">'
    yield f"<style>{STYLE}</style>"
    yield f'<rect width="{width}" height="{HEIGHT}" fill="white"/>'
    names = list(dict.fromkeys(row.cell.engine for rows in panels.values() for row in rows))
    top = max((time for rows in panels.values() for row in rows for time in waits(row)), default=1.0)
    for number, (link, rows) in enumerate(panels.items()):
        yield from _panel(rows, names, LEFT + number * (PANEL + BETWEEN), max(1.5, top), link)
    for number, name in enumerate(names):
        x, y = LEFT + len(panels) * (PANEL + BETWEEN) - 40, TOP + 10 + 22 * number
        yield f'<path class="line" stroke="{COLOURS[number % len(COLOURS)]}" d="M{x} {y - 4}h18"/>'
        yield f'<text x="{x + 24}" y="{y}">{name}</text>'
    yield "</svg>"


def waits(row: Row) -> list[float]:
    """Return how long the first host waited, the second and so on, as times one host's: medians of the rounds."""
    rounds = [sorted(part.seconds for part in result.parts if part.seconds is not None) for result in row.results]
    return [median(times) / row.base for times in zip(*rounds, strict=False)]


def _panel(rows: Sequence[Row], names: Sequence[str], x_start: float, top: float, link: float) -> Iterator[str]:
    hosts = rows[0].cell.hosts
    across = Scale(1, max(2, hosts), x_start, x_start + PANEL)
    up = Scale(0.9, top, BOTTOM, TOP)
    yield f'<text x="{x_start}" y="26">Links of {link:g} x the origin\'s: times one host\'s wait</text>'
    for tick in (tick for tick in TICKS if tick <= top):
        y = up(tick)
        yield f'<path stroke="{"#888" if tick == 1 else "#ddd"}" d="M{x_start} {y:.1f}h{PANEL}"/>'
        yield f'<text class="small" text-anchor="end" x="{x_start - 6}" y="{y + 4:.1f}">{tick:g} x</text>'
    for number in (1, 2, 4, 8, 16, 32, 64):
        if number <= hosts:
            x = across(number)
            yield f'<text class="small" text-anchor="middle" x="{x:.1f}" y="{BOTTOM + 18}">{number}</text>'
    centre = x_start + PANEL / 2
    yield f'<text class="small" text-anchor="middle" x="{centre}" y="{BOTTOM + 36}">hosts that have it</text>'
    for row in rows:
        points = [(across(at), up(time)) for at, time in enumerate(waits(row), 1)]
        if points:
            path = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
            colour = COLOURS[names.index(row.cell.engine) % len(COLOURS)]
            yield f'<path class="line" stroke="{colour}" d="M{path}"/>'
