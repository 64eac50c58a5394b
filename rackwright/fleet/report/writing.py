"""Puts a run's report beside its record, for the user's eyes only, as the record is."""

from __future__ import annotations

import os
from pathlib import Path

from rackwright.errors import RackwrightError
from rackwright.fleet.journal import read_record
from rackwright.fleet.report.page import page
from rackwright.fleet.story import story_of


def write(record: Path, out: Path | None = None) -> Path:
    """Write the report of a record and return where it is. Raises RackwrightError.

    out: the file to write; by default the record's name with `.html`.
    """
    target = out or record.with_suffix(".html")
    try:
        text = page(story_of(read_record(record)), record.stem)
        new = target.with_name(f".{target.name}.new")
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", errors="replace") as file:
            file.write(text)
        new.replace(target)
    except OSError as error:
        raise RackwrightError(f"the report of {record.stem} could not be written: {error}") from error
    return target
