"""The fleet as a picture: sums above, and the rows for which the terminal has room, the worst first. Pure.

A wide terminal has a column for what a host does; in a narrow one that follows the host's line on a line of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from rackwright.inspect.host_names import hosts_text
from rackwright.inspect.top.rows import TopRow, merged, total, whole
from rackwright.messages import counted, printable
from rackwright.record.view.screen import STYLES, line_of

HEAD = 4
"""Lines above the rows: title, sums, an empty one, the columns' names."""
SHORT, LONG = 7, 12
"""Letters of a release in a narrow and in a wide terminal."""
WIDE = 110
FIGURES = ("tok/s", "run", "wait")
INDENT = 4


@dataclass(frozen=True)
class Title:
    """The words above the rows."""

    inventory: str
    time: datetime
    keys: str = ""
    """The key that ends the picture; empty where it is printed once."""


def draw(rows: Sequence[TopRow], title: Title, height: int, width: int) -> RenderableType:
    """Return the picture. height, width: lines and columns of the terminal."""
    wide = width >= WIDE
    shown, others = fitting(rows, max(1, height - HEAD - 2), wide)
    parts: list[RenderableType] = [
        line_of(f"{title.inventory} · {states_text(rows)}", "bold"),
        line_of(sums_text(rows, title), "dim"),
        Text(""),
        *_lines(shown, width, wide),
    ]
    if others:
        parts.append(line_of(f"and {counted(len(others), 'line')} more: {states_text(others)}", "dim"))
    return Group(*parts)


def fitting(rows: Sequence[TopRow], room: int, wide: bool) -> tuple[list[TopRow], list[TopRow]]:
    """Return the rows that are drawn, and the others. Where not all have room, equal ones become one first."""
    alike = list(rows) if _height(rows, wide) <= room else merged(rows)
    if _height(alike, wide) <= room:
        return alike, []
    shown = max(1, sum(1 for number in range(len(alike)) if _height(alike[: number + 1], wide) < room))
    return alike[:shown], alike[shown:]


def _height(rows: Sequence[TopRow], wide: bool) -> int:
    """Return the lines that rows take."""
    return sum(1 if wide or not row.facts else 2 for row in rows)


def states_text(rows: Sequence[TopRow]) -> str:
    """Return `12 hosts: 1 hung, 11 serving`, the worst first."""
    hosts = {host for row in rows for host in row.hosts}
    counts = Counter[str]()
    for row in rows:
        counts[row.state] += len(row.hosts)
    return f"{counted(len(hosts), 'host')}: {', '.join(f'{n} {state}' for state, n in counts.items())}"


def sums_text(rows: Sequence[TopRow], title: Title) -> str:
    """Return the fleet's totals, the time, and the key that ends the picture."""
    tokens, running, waiting = (
        (total(figures) for figures in zip(*map(_figures, rows), strict=True)) if rows else [None] * 3
    )
    paused = len({host for row in rows for host in row.hosts if any(fact.kind == "paused" for fact in row.facts)})
    parts = [
        f"{rate_text(tokens)} tokens/s" if tokens is not None else "",
        _count(running, "running"),
        _count(waiting, "waiting"),
    ]
    parts += [f"watch paused on {counted(paused, 'host')}" if paused else "", f"{title.time:%H:%M:%S %Z}", title.keys]
    return " · ".join(part for part in parts if part)


def _figures(row: TopRow) -> tuple[float | None, float | None, float | None]:
    return row.rate, row.running, row.waiting


def _count(figure: float | None, state: str) -> str:
    return "" if figure is None else f"{whole(figure)} {state}"


def rate_text(figure: float | None) -> str:
    """Return tokens a second for people; empty without a figure."""
    return "" if figure is None else f"{figure:,.0f}" if figure >= 10 or not figure else f"{figure:.1f}"


def _lines(rows: Sequence[TopRow], width: int, wide: bool) -> Iterator[RenderableType]:
    """Yield the columns' names and the rows, all of the same widths."""
    several = len({row.endpoint for row in rows if row.endpoint}) > 1
    letters = LONG if wide else SHORT
    cells = [_cells(row, several, letters) for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(HEADS, *cells, strict=True)]
    widths[0] = min(widths[0], max(8, width // 3) if wide else width - sum(widths[1:]) - 2 * len(widths))
    yield _line(HEADS, widths, ["dim"] * len(HEADS), Text("now" if wide else "", "dim"))
    for row, texts in zip(rows, cells, strict=True):
        styles = ["", STYLES[row.tone], *[""] * (len(HEADS) - 2)]
        yield _line(texts, widths, styles, _facts(row) if wide else Text(""))
        if row.facts and not wide:
            yield Text(" " * INDENT, no_wrap=True, overflow="ellipsis").append_text(_facts(row))


HEADS = ("host", "state", "release", *FIGURES)


def _line(texts: Sequence[str], widths: Sequence[int], styles: Sequence[str], last: Text) -> Text:
    """Return one line: names to the left, figures to the right of their columns."""
    joined = Text(no_wrap=True, overflow="ellipsis")
    for number, (text, width, style) in enumerate(zip(texts, widths, styles, strict=True)):
        cell = line_of(text, style)
        cell.truncate(max(1, width), overflow="ellipsis")
        blanks = " " * (width - cell.cell_len)
        joined.append(blanks if HEADS[number] in FIGURES else "").append_text(cell)
        joined.append("  " if HEADS[number] in FIGURES else f"{blanks}  ")
    return joined.append_text(last)


def _cells(row: TopRow, several: bool, letters: int) -> tuple[str, ...]:
    name = f"{hosts_text(row.hosts)}{f' {row.endpoint}' if several and row.endpoint else ''}"
    requests = ("" if figure is None else str(figure) for figure in (row.running, row.waiting))
    return (printable(name), row.state, printable(row.release[:letters]), rate_text(row.rate), *requests)


def _facts(row: TopRow) -> Text:
    joined = Text(no_wrap=True, overflow="ellipsis")
    for number, fact in enumerate(row.facts):
        joined.append(" · " if number else "", "dim")
        joined.append(printable(fact.text), STYLES[fact.tone])
    return joined
