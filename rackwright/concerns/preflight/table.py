"""Rows as a table for people, or as one calm line."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from rackwright.concerns.preflight.row import CheckRow
from rackwright.errors import coded
from rackwright.printable import printable

WIDTH = 118


def verdict(row: CheckRow) -> str:
    """The word in the second column."""
    return "ok" if row.ok else row.severity


def render(rows: Sequence[CheckRow], width: int = WIDTH) -> str:
    """A table: name, verdict, what was seen, fix."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("seen", ratio=2, overflow="fold")
    if any(row.fix for row in rows):
        table.add_column("fix", ratio=3, overflow="fold")
    for row in rows:
        cells = (row.name, verdict(row) if row.ok else f"{verdict(row)} {row.code}".rstrip(), row.seen, row.fix)
        table.add_row(*(_plain(cell) for cell in cells[: len(table.columns)]))
    text = io.StringIO()
    Console(file=text, width=width, color_system=None, markup=False, emoji=False, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines() if line.strip())


def listing(rows: Sequence[CheckRow]) -> str:
    """Row by row with the fix on a line of its own, unbroken, so that it can be copied."""
    lines = [line for row in rows for line in (coded(row.code, f"{row.name}: {row.seen}"), f"  fix: {row.fix}")]
    return "\n".join(map(_plain, lines))


def _plain(text: str) -> str:
    """Process names come from strangers."""
    return printable(text)


def summary(rows: Sequence[CheckRow]) -> str:
    """One line."""
    stops, warnings = sum(row.stops for row in rows), sum(row.warns for row in rows)
    trouble = [f"{stops} stop this host"] * bool(stops)
    trouble += [f"{warnings} warning{'s' * (warnings > 1)}"] * bool(warnings)
    return f"preflight: {len(rows)} checks, {', '.join(trouble) or 'all good'}"
