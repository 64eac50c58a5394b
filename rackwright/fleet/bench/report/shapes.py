"""A picture as plain values: boxes, lines, dots and words; written as SVG here, as PNG by png.py. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Literal

INK, PAPER, FAINT = "#111111", "#ffffff", "#dddddd"
SIZE = 12
"""Of letters."""

Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True)
class Box:
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    kind: Literal["box"] = "box"


@dataclass(frozen=True)
class Polyline:
    """A line through points."""

    points: tuple[tuple[float, float], ...]
    colour: str
    kind: Literal["line"] = "line"


@dataclass(frozen=True)
class Dot:
    """A dot, and what it says when somebody points at it."""

    x: float
    y: float
    colour: str
    title: str
    radius: float = 4
    kind: Literal["dot"] = "dot"


@dataclass(frozen=True)
class Words:
    """One line of text; y is that of its foot."""

    x: float
    y: float
    text: str
    anchor: Anchor = "start"
    colour: str = INK
    bold: bool = False
    kind: Literal["words"] = "words"


Shape = Box | Polyline | Dot | Words


@dataclass(frozen=True)
class Picture:
    """Shapes in the order in which they are drawn, on white. Lengths in pixels of the screen."""

    name: str
    """Of its file."""
    title: str
    width: float
    height: float
    shapes: tuple[Shape, ...]


def svg(picture: Picture) -> str:
    """The picture as SVG that needs nothing else."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {picture.width:g} {picture.height:g}" '
    named = f'font-family="sans-serif" font-size="{SIZE}" role="img" aria-label="{escape(picture.title)}">'
    paper = f'<rect width="100%" height="100%" fill="{PAPER}"/>'
    return f"{head}{named}{paper}{''.join(_written(picture.shapes))}</svg>"


def _written(shapes: tuple[Shape, ...]) -> Iterator[str]:
    for one in shapes:
        match one:
            case Box():
                size = f'width="{one.width:.1f}" height="{one.height:.1f}"'
                yield f'<rect x="{one.x:.1f}" y="{one.y:.1f}" {size} fill="{one.colour}"/>'
            case Polyline():
                points = " ".join(f"{x:.1f},{y:.1f}" for x, y in one.points)
                yield f'<polyline points="{points}" fill="none" stroke="{one.colour}"/>'
            case Dot():
                place = f'cx="{one.x:.1f}" cy="{one.y:.1f}" r="{one.radius:g}" fill="{one.colour}"'
                yield f"<circle {place}><title>{escape(one.title)}</title></circle>"
            case Words():
                bold = ' font-weight="bold"' if one.bold else ""
                place = f'x="{one.x:.1f}" y="{one.y:.1f}" text-anchor="{one.anchor}" fill="{one.colour}"{bold}'
                yield f"<text {place}>{escape(one.text)}</text>"
