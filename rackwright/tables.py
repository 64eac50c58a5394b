"""Rows as aligned columns for a terminal, without colours; words stay whole where lines may be long enough. Pure."""

from __future__ import annotations

import io
from collections.abc import Sequence

WIDEST = 240
"""Columns that a table may take so that its words stay whole: a terminal wraps the line, and a copied word is right."""
BETWEEN = 3
"""Columns of white space between two columns."""


def drawn(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int, whole: int) -> str:
    """A table with a rule below its heads. whole: columns from the left that are never wrapped."""
    from rich import box  # noqa: PLC0415 - a run that draws no table starts without rich
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    cells = [heads, *rows]
    longest = [max(len(word) for row in cells for word in (row[n].split() or [""])) for n in range(len(heads))]
    widest = [max(len(row[n]) for row in cells) for n in range(whole)]
    needed = sum(widest) + sum(longest[whole:]) + BETWEEN * len(heads)
    fits = needed <= WIDEST
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for n, head in enumerate(heads):
        least = longest[n] if fits and n >= whole else None
        table.add_column(head, no_wrap=n < whole, overflow="fold", min_width=least)
    for row in rows:
        table.add_row(*row)
    text = io.StringIO()
    columns = max(width, needed) if fits else width
    Console(file=text, width=columns, color_system=None, markup=False, emoji=False, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines() if line.strip())
