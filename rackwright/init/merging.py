"""Two sides' changes of one file in one text, by `git merge-file`; where they meet, both stay, between marks."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rackwright.messages import RackwrightError

MARK = b"<<<<<<< "
"""Begins a conflict."""
SECONDS = 60
MOST = 127
"""Conflicts that git counts; what is above is an error of its own."""


@dataclass(frozen=True)
class Sides:
    """The labels of the three texts, as the marks of a conflict name them."""

    mine: str = "yours"
    before: str = "shipped before"
    now: str = "shipped now"


def refuse_without_git() -> None:
    """Raise RackwrightError where git is missing."""
    if shutil.which("git") is None:
        text = "git is not installed, which merges your changes with the installed version's; nothing was done; next: "
        raise RackwrightError(f"{text}apt-get install git, then the same command", code="RW1042")


def merged(mine: bytes, before: bytes, now: bytes, sides: Sides) -> bytes | None:
    """Return one text with both sides' changes since `before`; None where git cannot merge them."""
    texts = {sides.mine: mine, sides.before: before, sides.now: now}
    with TemporaryDirectory() as folder:
        files = [Path(folder) / str(number) for number in range(len(texts))]
        for file, text in zip(files, texts.values(), strict=True):
            file.write_bytes(text)
        labels = [argument for label in texts for argument in ("-L", label)]
        words = ("git", "merge-file", "-p", "-q", "--diff3", *labels, *map(str, files))
        done = subprocess.run(words, cwd=folder, capture_output=True, timeout=SECONDS, check=False)
    return done.stdout if 0 <= done.returncode <= MOST else None


def conflicts_in(text: bytes) -> list[int]:
    """Return the lines at which a conflict begins, from 1."""
    return [number for number, row in enumerate(text.split(b"\n"), 1) if row.startswith(MARK)]
