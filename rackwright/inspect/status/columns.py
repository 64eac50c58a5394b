"""The columns of status. Alone: the command line needs them, and nothing else of what makes the rows."""

from __future__ import annotations

from rackwright.tables import Column

COLUMNS = (
    Column("host"),
    Column("endpoint"),
    Column("release", 7, 12),
    Column("since", 5),
    Column("health", 6, 14),
    Column("GPUs", 3),
    Column("clients", 4),
    Column("drift"),
    Column("lease", 1),
    Column("last run", 2),
)
