"""A site's copies of the shipped files against those of the installed version: what is to be done with each. Pure.

Beside the copies are the shipped files as they were copied (`.rackwright/shipped/`): they alone distinguish a site's
edit from a change of Rackwright's.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class UpdateAction(StrEnum):
    """What becomes of one file."""

    SAME = "same"
    """It is as the installed version has it, or the site's alone has changed."""
    WRITE = "write"
    """New, or untouched and changed by the installed version."""
    REMOVE = "remove"
    """Untouched, and shipped no longer."""
    BOTH = "both"
    """Changed on both sides: for a person."""
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
        """What becomes of it."""
        if self.mine == self.now or (self.before == self.now and self.mine is not None):
            return UpdateAction.SAME
        if self.mine is None:
            return UpdateAction.WRITE if self.before is None else UpdateAction.GONE
        if self.mine == self.before:
            return UpdateAction.WRITE if self.now is not None else UpdateAction.REMOVE
        return UpdateAction.BOTH

    @property
    def diff(self) -> str:
        """Both sides' changes since it was copied; without a copy of then, the site's file against the shipped one."""
        if self.before is None:
            return _unified(self.mine, self.now, f"{self.path} (yours)", f"{self.path} (shipped now)")
        yours = _unified(self.before, self.mine, f"{self.path} (shipped then)", f"{self.path} (yours)")
        ours = _unified(self.before, self.now, f"{self.path} (shipped then)", f"{self.path} (shipped now)")
        return f"what you have changed:\n{yours}\nwhat the installed version changes:\n{ours}"


def copies(before: Mapping[Path, bytes], mine: Mapping[Path, bytes], now: Mapping[Path, bytes]) -> Iterator[Copy]:
    """Yield every file that is, or was, shipped."""
    for path in sorted({*before, *now}):
        yield Copy(path, before.get(path), mine.get(path), now.get(path))


def _unified(one: bytes | None, other: bytes | None, old: str, new: str) -> str:
    before, after = ((text or b"").decode(errors="replace").splitlines() for text in (one, other))
    return "\n".join(difflib.unified_diff(before, after, old, new, lineterm="", n=3))
