"""Rows of status as a table for people."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from rackwright.fleet.status import StatusRow

COLUMNS = ("host", "endpoint", "release", "up", "health", "GPUs", "clients", "drift")


def render(rows: Sequence[StatusRow], width: int = 118) -> str:
    """The table, and a line of sums."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, overflow="fold", no_wrap=name in ("host", "release"))
    for row in rows:
        table.add_row(*_cells(row))
    text = io.StringIO()
    Console(file=text, width=width, color_system=None, markup=False, emoji=False, highlight=False).print(table)
    lines = [line.rstrip() for line in text.getvalue().splitlines() if line.strip()]
    return "\n".join([*lines, sums(rows)])


def _cells(row: StatusRow) -> tuple[str, ...]:
    release = f"{row.release}{'' if row.proven else ' (not proven)'}" if row.release else "-"
    gpus = "?" if row.gpus is None else f"{row.gpus} {row.gpu_model}".strip()
    drift = {True: "yes", False: "no", None: "-"}[row.drift]
    clients = "-" if row.connections is None else str(row.connections)
    return row.host, row.endpoint, release, duration(row.up_seconds), row.health, gpus, clients, drift


def duration(seconds: int | None) -> str:
    """`12 s`, `5 min`, `3 h 20 min`, `12 d 4 h`."""
    if seconds is None:
        return "-"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min" if minutes else f"{seconds} s"


def sums(rows: Sequence[StatusRow]) -> str:
    """How many endpoints serve, and what the others do."""
    states = [row.health if row.endpoint != "?" else "not known" for row in rows]
    counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    return f"{len(rows)} endpoints: {', '.join(counts)}"
