"""Answers of releases, kept beside the records of a site's runs: the next release is compared with them.

They are for their owner alone. One that is lost, damaged or cannot be written is missing, and fails nothing.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from rackwright.record.journal import make_folder

FOLDER = "answers"
"""Below the folder of the records."""
KEPT = 50
"""Files that stay; the oldest go."""


def answers_file(records: Path, release: str, questions_hash: str) -> Path:
    """Return the file of a release's answers to some questions. records: the folder of the runs' records."""
    return records / FOLDER / f"{re.sub(r'[^0-9A-Za-z]', '_', release)}-{questions_hash[:16]}.json"


def stored_answers(path: Path, most: int) -> str | None:
    """Return a file's text; None where it cannot be read, or has more bytes than `most`."""
    try:
        return path.read_text(encoding="utf-8") if path.stat().st_size <= most else None
    except (OSError, ValueError):
        return None


def store_answers(path: Path, text: str) -> bool:
    """Write a file of answers, whole or not at all. Returns False where it cannot be written."""
    new = path.with_suffix(f".{os.getpid()}.new")
    try:
        make_folder(path.parent.parent)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with open(new, "w", encoding="utf-8", opener=_private) as file:
            file.write(text)
        new.replace(path)
        _prune(path.parent)
    except OSError:
        new.unlink(missing_ok=True)
        return False
    return True


def _private(file: str, flags: int) -> int:
    return os.open(file, flags, 0o600)


def _prune(folder: Path) -> None:
    files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
    for old in files[:-KEPT]:
        with suppress(OSError):
            old.unlink()
