"""`--only failed@last`: hosts by how they ended in an earlier run."""

from __future__ import annotations

from pathlib import Path

from rackwright.messages import RackwrightError
from rackwright.record.journal import chosen_record, read_record
from rackwright.record.record import CATEGORIES, hosts_in, record_of
from rackwright_engines.nearest import nearest

HELP = f"hosts by how they ended in a run, as `failed@last`; STATE: {', '.join(CATEGORIES)}"


def named_by(root: Path, text: str) -> set[str]:
    """Return the names of the hosts that STATE@RUN means in the records of a site.

    Raises RackwrightError for an unknown state or run, and for hosts that do not exist.
    """
    category, at, run = text.partition("@")
    if not at or not run or category not in CATEGORIES:
        hint = nearest(category, CATEGORIES)
        raise RackwrightError(
            f"--only {text}: must be STATE@RUN{hint}; states: {', '.join(CATEGORIES)}; runs: `last`, or a name that "
            "`rackwright runs` shows; nothing was done",
            code="RW0605",
        )
    path = chosen_record(root, run)
    found = hosts_in(record_of(path.stem, read_record(path)), category)
    if not found:
        raise RackwrightError(f"--only {text}: no host of run {path.stem} is that; nothing was done", code="RW0606")
    return set(found)
