"""A site's copies of the shipped files against those of the installed version: what is to be done with each. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class UpdateAction(StrEnum):
    """Actions of an update on one file."""

    SAME = "same"
    """It is as the installed version has it, or the site's alone has changed."""
    WRITE = "write"
    """New, or untouched and changed by the installed version."""
    MERGE = "merge"
    """Changed on both sides."""
    COMPARE = "compare"
    """It differs, and which version it came from is not known: for a person."""
    YOURS = "yours"
    """Shipped no longer: it stays, and is the site's alone."""
    GONE = "gone"
    """The site has removed it: it stays away."""


@dataclass(frozen=True)
class Copy:
    """One file: as it was shipped when it was copied, as the site has it, as it is shipped now; None: not there."""

    path: Path
    before: bytes | None
    mine: bytes | None
    now: bytes | None

    @property
    def action(self) -> UpdateAction:
        """Return the action for this file."""
        if self.mine == self.now or (self.before == self.now and self.mine is not None):
            return UpdateAction.SAME
        if self.mine is None:
            return UpdateAction.WRITE if self.before is None else UpdateAction.GONE
        if self.now is None:
            return UpdateAction.YOURS
        if self.mine == self.before:
            return UpdateAction.WRITE
        return UpdateAction.COMPARE if self.before is None else UpdateAction.MERGE

    @property
    def diff(self) -> str:
        """The site's file against the shipped one."""
        before, after = ((text or b"").decode(errors="replace").splitlines() for text in (self.mine, self.now))
        rows = difflib.unified_diff(before, after, f"{self.path} (yours)", f"{self.path} (shipped)", lineterm="", n=3)
        return "\n".join(rows)


def copies(before: Mapping[Path, bytes], mine: Mapping[Path, bytes], now: Mapping[Path, bytes]) -> Iterator[Copy]:
    """Yield every file that is, or was, shipped."""
    for path in sorted({*before, *now}):
        yield Copy(path, before.get(path), mine.get(path), now.get(path))
