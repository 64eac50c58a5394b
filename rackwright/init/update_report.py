"""The lines of `rackwright init --update` about each file. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rackwright.init.copies import Copy, UpdateAction
from rackwright.init.updating import Update
from rackwright.messages import counted, paragraph

DIFFERS = "differs from the shipped one, and is left as it is:"


def update_rows(site: Path, done: Update) -> Iterator[str]:
    """Yield what became of each file, and what remains to do."""
    for copy in done.copies:
        yield from _row(site, copy, done)
    changed = counted([copy.action for copy in done.copies].count(UpdateAction.WRITE), "file")
    merges, conflicts = counted(len(done.texts), "merge"), counted(len(done.conflicts), "file")
    yield f"{site}: {changed} brought to the installed version, {merges}, {conflicts} in conflict"
    if done.conflicts:
        yield "next: in each, keep what you want of both sides and remove the marks, then: rackwright check INVENTORY"
    if any(copy.path not in done.conflicts for copy in done.manual):
        yield "next: take over by hand what you want of the differences above; they are shown once only"


def _row(site: Path, copy: Copy, done: Update) -> Iterator[str]:
    words = {
        UpdateAction.WRITE: "updated" if copy.mine is not None else "new",
        UpdateAction.YOURS: "is no longer shipped, and stays as it is",
        UpdateAction.GONE: "stays away, as you have removed it",
        UpdateAction.COMPARE: DIFFERS,
    }
    if copy.path in done.conflicts:
        yield from (f"{site / copy.path}:{number}: conflict" for number in done.conflicts[copy.path])
    elif copy.path in done.texts:
        yield f"{copy.path}: merged with your changes"
    elif copy.path in done.unmerged:
        yield f"{copy.path}: {DIFFERS} git cannot merge it"
    elif copy.action in words:
        yield f"{copy.path}: {words[copy.action]}"
    if copy.action is UpdateAction.COMPARE:
        yield from (f"  {row}" for row in paragraph(copy.diff).splitlines())
