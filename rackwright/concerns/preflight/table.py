"""Rows as a table for people, or as one line."""

from __future__ import annotations

from collections.abc import Sequence

from rackwright.concerns.preflight.row import CheckRow
from rackwright.messages import coded, counted, printable
from rackwright.tables import Column, drawn

COLUMNS = (Column("check"), Column(""), Column("seen", 2, 24), Column("fix", 1))
PREFIX = 30
"""Columns of a terminal that pyinfra takes for the host's name before each line."""


def verdict(row: CheckRow) -> str:
    """Return the text in the second column."""
    return "ok" if row.ok else row.severity


def render(rows: Sequence[CheckRow], width: int | None = None) -> str:
    """Return a table: name, verdict, finding, fix. width: the columns that it may take."""
    columns = COLUMNS if any(row.fix for row in rows) else COLUMNS[:-1]
    return drawn(columns, [_cells(row)[: len(columns)] for row in rows], width)


def _cells(row: CheckRow) -> tuple[str, ...]:
    cell = verdict(row) if row.ok else f"{verdict(row)} {row.code}".rstrip()
    return tuple(map(_plain, (row.name, cell, row.reading, row.fix)))


def warned(rows: Sequence[CheckRow]) -> str:
    """Return the warnings row by row, for reading among other lines."""
    fixes = [f"\n  fix: {row.fix}" if row.fix else "" for row in rows]
    warnings = [f"warn {coded(row.code, f'{row.name}: {row.reading}')}" for row in rows]
    return "\n".join(_plain(part) for text in map(str.__add__, warnings, fixes) for part in text.split("\n"))


def listing(rows: Sequence[CheckRow]) -> str:
    """Return row by row, with the fix on a separate, unbroken line so that it can be copied."""
    lines = [part for row in rows for part in (coded(row.code, f"{row.name}: {row.reading}"), f"  fix: {row.fix}")]
    return "\n".join(map(_plain, lines))


def _plain(text: str) -> str:
    """Escape text: process names are not trusted."""
    return printable(text)


def summary(rows: Sequence[CheckRow]) -> str:
    """Return one line."""
    stops, warnings = sum(row.stops for row in rows), sum(row.warns for row in rows)
    trouble = [f"{stops} stop{'s' * (stops == 1)} this host"] * bool(stops)
    trouble += [counted(warnings, "warning")] * bool(warnings)
    return f"preflight: {counted(len(rows), 'check')}, {', '.join(trouble) or 'all good'}"
