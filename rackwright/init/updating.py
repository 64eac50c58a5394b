"""`rackwright init --update`: a site's files follow the installed version, and what the site has changed is merged."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rackwright import __version__
from rackwright.init.bases import Bases
from rackwright.init.copies import Copy, UpdateAction, copies
from rackwright.init.merging import Sides, conflicts_in, merged, refuse_without_git
from rackwright.init.writing import write_file
from rackwright.messages import RackwrightError

SIDES = Sides(before="shipped before", now=f"shipped in {__version__}")


@dataclass(frozen=True)
class Update:
    """The result of an update for each file that is, or was, shipped."""

    copies: tuple[Copy, ...]
    texts: Mapping[Path, bytes]
    """The merged text."""
    unmerged: frozenset[Path]
    """Files that git cannot merge: not text."""

    @property
    def conflicts(self) -> dict[Path, list[int]]:
        """Lines at which a conflict begins, of this update or of an earlier one, by path."""
        texts = {copy.path: self.texts.get(copy.path, copy.mine or b"") for copy in self.copies}
        return {path: rows for path, text in texts.items() if (rows := conflicts_in(text))}

    @property
    def manual(self) -> list[Copy]:
        """Files that a person must look at."""
        found = {*self.conflicts, *self.unmerged}
        return [copy for copy in self.copies if copy.path in found or copy.action is UpdateAction.COMPARE]


def update_site(site: Path, now: Mapping[Path, bytes]) -> Update:
    """Bring a site's files to those of `now`, with its own changes in them; returns what became of each.

    Nothing of the site's own is lost: what cannot be merged stays as it is.
    Raises RackwrightError when git is missing, a file cannot be written, or an earlier conflict is still in one.
    """
    bases = Bases(site)
    before = bases.read()
    mine = {path: (site / path).read_bytes() for path in {*now, *before} if (site / path).is_file()}
    found = [
        copy for copy in copies(before, mine, now) if copy.mine is not None or not os.path.lexists(site / copy.path)
    ]
    merges = [copy for copy in found if copy.action is UpdateAction.MERGE]
    _refuse_conflicts(site, merges)
    if merges:
        refuse_without_git()
    results = {copy.path: merged(copy.mine or b"", copy.before or b"", copy.now or b"", SIDES) for copy in merges}
    update = Update(
        tuple(found),
        {path: text for path, text in results.items() if text is not None},
        frozenset(path for path, text in results.items() if text is None),
    )
    _carry_out(site, update, bases)
    return update


def _refuse_conflicts(site: Path, merges: Sequence[Copy]) -> None:
    """Raise RackwrightError where a file that is to be merged has a conflict of an earlier update in it."""
    for copy in merges:
        if rows := conflicts_in(copy.mine or b""):
            text = (
                f"{site / copy.path}:{rows[0]}: a conflict of an earlier update is still there; nothing was done; next"
            )
            raise RackwrightError(f"{text}: resolve it, then the same command", code="RW1072")


def _carry_out(site: Path, update: Update, bases: Bases) -> None:
    for copy in update.copies:
        text = copy.now if copy.action is UpdateAction.WRITE else update.texts.get(copy.path)
        if text is not None:
            write_file(site / copy.path, text)
    bases.write({copy.path: copy.now for copy in update.copies if copy.now is not None})
