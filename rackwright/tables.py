"""Rows as aligned columns, as wide as the terminal; no word is ever cut.

Where a table is wider than the terminal, its columns give room one after another, the least important first: they wrap
between words, or their values follow each row on lines of their own. Without a terminal each row is one line.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

GAP = 3
"""Blanks between two columns."""
INDENT = 4
"""Blanks before a value that follows its row."""
NOTHING = frozenset({"", "-", "?"})
"""Cells that say nothing: no such value follows a row."""
LEAST = 20
"""Columns that such a value has in the narrowest terminal."""
COMMAND = re.compile("next: [^;,]+|^fix: .+")
HELD = "\x00"
"""Stands for a blank at which no line is broken."""


Table = tuple[list["Column"], list[list[str]]]
"""Columns, and the cells of each row."""


@dataclass(frozen=True)
class Column:
    """A column by its head.

    yields: its turn to give room, 1 first; 0 for one that never does: a name, a code. least: the width down to which
    it may wrap; 0 for one that does not.
    """

    head: str
    yields: int = 0
    least: int = 0


def name_of(column: Column) -> str:
    """Return a column's name on the command line: `last-run`."""
    return column.head.lower().replace(" ", "-")


def only(columns: Sequence[Column], rows: Sequence[Sequence[str]], names: Sequence[str]) -> Table:
    """Return the columns of these names with their cells, in that order; all of them where no name is given."""
    by_name = {name_of(column): n for n, column in enumerate(columns)}
    chosen = [by_name[name] for name in names or by_name]
    return [columns[n] for n in chosen], [[row[n] for n in chosen] for row in rows]


def shown_width() -> int | None:
    """Return the columns of the terminal that the output goes to, or None without one. COLUMNS wins, as in `watch`."""
    if (columns := os.environ.get("COLUMNS", "")).isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (OSError, ValueError):
        return None


def drawn(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None) -> str:
    """Return the table with a rule below its heads. width: columns of the terminal, None without one."""
    heads = tuple(column.head for column in columns)
    widths = _fitted(columns, [heads, *rows], width)
    head = next(_side_by_side(_bands(heads, widths, width)[0]))
    lines = [text for row in rows for text in _lines(heads, row, widths, width)]
    longest = max(map(len, [head, *lines]))
    return "\n".join([head, "─" * min(longest, width or len(head)), *lines])


def aligned(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Return the rows' lines alone, without heads and rule."""
    widths = _fitted(columns, rows, width)
    heads = [column.head for column in columns]
    return [text for row in rows for text in _lines(heads, row, widths, width)]


def _fitted(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None) -> list[int]:
    """Return the columns' widths; 0 for those whose values follow their rows."""
    natural = [max((len(row[n]) for row in rows), default=0) for n in range(len(columns))]
    widths = list(natural)
    turns = sorted((n for n, column in enumerate(columns) if column.yields), key=lambda n: columns[n].yields)
    while width is not None and _total(widths) > width and turns:
        gone = next((n for n in turns if not _wraps(widths, n, columns[n], width)), turns[0])
        if _total(widths) > width:
            turns.remove(gone)
            widths = [natural[n] if n in turns or not column.yields else 0 for n, column in enumerate(columns)]
    return widths


def _wraps(widths: list[int], n: int, column: Column, width: int) -> bool:
    """Narrow a column as far as it may wrap and as is needed. False where it does not wrap, and would have to."""
    over = max(0, _total(widths) - width)
    if over and not column.least:
        return False
    widths[n] -= min(over, max(0, widths[n] - max(column.least, len(column.head))))
    return True


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (sum(map(bool, widths)) - 1)


def _lines(heads: Sequence[str], row: Sequence[str], widths: Sequence[int], width: int | None) -> Iterator[str]:
    """Yield one row: side by side what has room, and below it, by its head, what has none."""
    for band in _bands(row, widths, width):
        yield from _side_by_side(band)
    cells = zip(heads, row, widths, strict=True)
    below = [f"{head}: {cell}" for head, cell, column in cells if not column and cell not in NOTHING]
    yield from _below(below, max(LEAST, (width or 0) - INDENT))


def _below(values: Sequence[str], width: int) -> Iterator[str]:
    """Yield values with their heads, as many in a line as have room."""
    joined = ""
    for value in values:
        longer = f"{joined}{' ' * GAP}{value}" if joined else value
        if len(longer) <= width:
            joined = longer
            continue
        yield from _indented(joined, width)
        joined = value
    yield from _indented(joined, width)


def _indented(text: str, width: int) -> Iterator[str]:
    lines = [text] if len(text) <= width else _wrapped(text, width)
    yield from (f"{' ' * INDENT}{part}" for part in lines if part)


def _bands(row: Sequence[str], widths: Sequence[int], width: int | None) -> list[list[tuple[int, list[str]]]]:
    """Return cells that are side by side, each with its offset; words longer than their column get their own line."""
    bands: list[list[tuple[int, list[str]]]] = [[]]
    offset = end = 0
    for cell, column in zip(row, widths, strict=True):
        if cell and column:
            lines = [cell] if len(cell) <= column else _wrapped(cell, column)
            longest = max(map(len, lines))
            at = offset if longest <= column or width is None else max(0, min(offset, width - longest))
            if at < end:
                bands.append([])
            bands[-1].append((at, lines))
            end = at + longest + GAP
        offset += column + GAP if column else 0
    return bands


def _side_by_side(band: Sequence[tuple[int, Sequence[str]]]) -> Iterator[str]:
    for texts in zip_longest(*(lines for _, lines in band), fillvalue=""):
        joined = ""
        for (at, _), text in zip(band, texts, strict=True):
            joined = joined.ljust(at) + text if text else joined
        yield joined.rstrip()


def folded(text: str, width: int | None) -> str:
    """Return the text with each line that is longer than the terminal broken between words, its rest indented."""
    return "\n".join(part for row in text.split("\n") for part in _folded(row, width))


def _folded(row: str, width: int | None) -> list[str]:
    if width is None or len(row) <= width:
        return [row]
    margin = " " * (len(row) - len(row.lstrip()))
    first, *more = _wrapped(row.strip(), max(LEAST, width - INDENT - len(margin)))
    return [f"{margin}{first}", *(f"{margin}{' ' * INDENT}{part}" for part in more)]


def _wrapped(text: str, width: int) -> list[str]:
    """Return lines broken between words; a command after `next:` stays in one, since half of it would run, too."""
    whole = COMMAND.sub(lambda found: found[0].replace(" ", HELD), text)
    lines = textwrap.wrap(whole, width, break_long_words=False, break_on_hyphens=False)
    return [part.replace(HELD, " ") for part in lines] or [""]
