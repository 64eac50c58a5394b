"""Puts a run's report beside its record, for the user's eyes only, as the record is."""

from __future__ import annotations

import os
from pathlib import Path

from rackwright.messages import RackwrightError, writing
from rackwright.record.journal import read_record
from rackwright.record.view.report.page import page
from rackwright.record.view.timeline import Timeline
from rackwright.record.view.timeline_events import timeline_of

HOSTS, LINES = 20, 200
"""Hosts whose kept logs are in the report itself, and lines of each; the files have the rest."""


def write(record: Path, out: Path | None = None) -> Path:
    """Write the report of a record and return where it is. Raises RackwrightError.

    out: the file to write; by default the record's name with `.html`.
    """
    target = out or record.with_suffix(".html")
    try:
        timeline = timeline_of(read_record(record))
        text = page(timeline, record.stem, _logs(timeline, record))
    except OSError as error:
        text = f"the record of {record.stem} cannot be read: {error}; next: ls -l {record.with_suffix('')}*"
        raise RackwrightError(text, code="RW0820") from error
    write_privately(target, text)
    return target


def write_privately(target: Path, text: str) -> None:
    """Put a file in its place, whole or not at all, for its owner only. Raises RackwrightError."""
    new = target.with_name(f".{target.name}.new")
    with writing(target):
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", errors="replace") as file:
            file.write(text)
        new.replace(target)


def _logs(timeline: Timeline, record: Path) -> dict[str, str]:
    """Return the end of each kept log that is in the run's own folder, where it should be."""
    folder, found = record.with_suffix("").resolve(), dict[str, str]()
    for host in [host for host in timeline.hosts.values() if host.logs][:HOSTS]:
        path = Path(host.logs[-1]).resolve()
        if path.is_file() and folder in path.parents:
            found[host.name] = "\n".join(path.read_text(errors="replace").splitlines()[-LINES:])
    return found
