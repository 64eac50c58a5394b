"""Rows of status as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from rackwright.inspect.host_names import hosts_text
from rackwright.inspect.status.columns import COLUMNS
from rackwright.inspect.status.rows import GATEWAY, UNKNOWN, StatusRow, grouped, states_of
from rackwright.messages import counted
from rackwright.tables import drawn, name_of, only

LONGEST, BELOW = 32, "see below"
"""Letters of a host's health in its row, and the text in place of a longer one: it would widen all rows."""

LEFT = "; its run has ended, and the next run clears it; next: pyinfra INVENTORY deploy.py"


def render(rows: Sequence[StatusRow], width: int | None = None, names: Sequence[str] = ()) -> str:
    """Return the table, what moved, and a line of sums. Columns that say nothing of any host are left out.

    width: the terminal's. names: of the columns; none for all that say something.
    """
    cells = [_cells(row) for row in rows]
    telling = [name_of(column) for n, column in enumerate(COLUMNS) if any(row[n] for row in cells)]
    text = drawn(*only(COLUMNS, cells, names or telling), width)
    return "\n".join([text, *notes(rows), *_releases(rows), sums(rows)])


def _cells(row: StatusRow) -> tuple[str, ...]:
    gpus = UNKNOWN if row.gpus is None else f"{row.gpus} {row.gpu_model}".strip()
    gpus = "-" if row.endpoint == GATEWAY else gpus
    clients = "-" if row.connections is None else str(row.connections)
    held = (("drained", row.drained), ("quarantined", row.quarantine), ("watch paused", row.paused))
    words = [mark for mark, why in held if why]
    words += [f"has {row.address}"] if row.address else []
    words += [mark.partition("-")[0] for mark in row.marks]
    marks = ", ".join(mark for mark in words if mark != row.health)
    state = BELOW if len(row.health) > LONGEST else row.health
    health = f"{state} ({marks})" if marks else state
    return (
        row.host, row.endpoint, _release(row), duration(row.up_seconds), health, gpus, clients, _drift(row),
        row.lock, row.last_run,
    )  # fmt: skip


def _release(row: StatusRow) -> str:
    return f"{row.release}{'' if row.proven else ' (not proven)'}" if row.release else "-"


def _drift(row: StatusRow) -> str:
    """Prefer what moved on its own to what the settings ask for since."""
    if row.drift is None:
        return "-"
    if row.drift:
        return "moved"
    return {True: "no", False: "behind", None: UNKNOWN}[row.wanted]


def notes(rows: Sequence[StatusRow]) -> list[str]:
    """Return what moved, how a cut switch ended, and why a host is in quarantine, a line each."""
    found = [f"{row.host}: {row.health}" for row in rows if len(row.health) > LONGEST]
    found += dict.fromkeys(f"{row.host}: {row.booted}" for row in rows if row.booted)
    found += [f"{row.host} {row.endpoint}: {text}" for row in rows for text in (*(row.moved or ()), row.note) if text]
    found += [f"{row.host} {row.endpoint}: {row.watch}; next: rackwright logs INVENTORY" for row in rows if row.watch]
    found += [
        f"{row.host} {row.endpoint}: mark {mark}{LEFT if mark in row.ended_marks else ''}"
        for row in rows
        for mark in row.marks
    ]
    found += dict.fromkeys(
        f"{row.host}: {row.drained}; next: rackwright undrain INVENTORY --limit {row.host}"
        for row in rows
        if row.drained
    )
    found += dict.fromkeys(
        f"{row.host}: {row.paused}; next: rackwright watch resume INVENTORY --limit {row.host}"
        for row in rows
        if row.paused
    )
    for text in dict.fromkeys(row.direct for row in rows if row.direct):
        hosts = dict.fromkeys(row.host for row in rows if row.direct == text)
        found.append(f"ports {text}: {hosts_text(list(hosts))}")
    found += dict.fromkeys(
        f"{row.host}: in quarantine: {row.quarantine}; {_way_out(row)}" for row in rows if row.quarantine
    )
    return found


def _way_out(row: StatusRow) -> str:
    """Return the commands by which a host leaves its quarantine, once its fault is fixed."""
    release = f"rackwright quarantine INVENTORY --release --limit {row.host}"
    if row.drained:
        return f"next: rackwright diagnose INVENTORY --limit {row.host}; when its fault is fixed: {release}"
    return f"next, when its fault is fixed: {release}"


def _releases(rows: Sequence[StatusRow]) -> list[str]:
    """Return the hosts of each release of an endpoint, where it is not the same one everywhere; and what is adopted."""
    groups = grouped(rows)
    several = [one for one in groups if sum(other.endpoint == one.endpoint for other in groups) > 1]
    found = [f"{one.endpoint}: release {one.release} on {hosts_text(one.hosts)}" for one in several]
    return found + [
        f"{one.endpoint}: release {one.release} is adopted at the next switch by {hosts_text(one.hosts)}"
        for one in grouped(rows, adopted=True)
    ]


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
    """Count the endpoints that serve, and what the others do."""
    states = states_of(rows)
    counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    return ": ".join([counted(len(states), "endpoint"), *filter(None, [", ".join(counts)])])
