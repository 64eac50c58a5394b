"""Marks of the endpoints that a job drains, tries and proves. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from rackwright.concerns.marks import MARKS, MarkState, trial_mark
from rackwright.hostside import durable_script, host_text
from rackwright.paths import WORD_NOTES

HEARD = 10
"""Seconds within which the gateways hear that an endpoint serves again: they ask every 2 s, and are gone after 6."""


def mark_script(endpoints: Iterable[str], state: MarkState, why: str) -> str:
    """Return the script of a job that marks its endpoints; it fails where a mark cannot be written."""
    return _with_functions("mark_trials", marked=" ".join(endpoints), word=state, why=why)


def unmark_script(endpoints: Iterable[str], undone: bool = False) -> str:
    """Return the script of a job that removes its marks, and ends when each gateway knows.

    undone: restore the marks from before the job instead.
    """
    words = {"marked": " ".join(endpoints), "undone": "yes" if undone else "no", "notes": WORD_NOTES}
    return host_text("event.sh") + _with_functions("unmark_trials", **words, askers_limit=HEARD)


def mark_files(endpoints: Iterable[str]) -> str:
    """Return the paths of the marks that a job has for its endpoints."""
    return " ".join(f"{MARKS}/{trial_mark(name)}" for name in endpoints)


def _with_functions(name: str, **values: str | int) -> str:
    return host_text("mark.sh") + durable_script(name, **values)
