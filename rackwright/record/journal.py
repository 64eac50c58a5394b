"""The record of a run: one JSON line an event, in `runs/ID.jsonl` of the site. It never holds a secret.

The command that starts a run puts its file into the handover; without it nothing is written.
docs/reference/run-record.md has every kind of event.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rackwright.messages import RackwrightError, printable_values
from rackwright.record.handover import received

FOLDER = "runs"
FOLDER_VARIABLE = "RACKWRIGHT_RUNS"
"""Names another folder for the records, for example one that several operators share."""
SECOND = len("20260131-235959")
"""Length of the part of a run's name that says when it began."""
KEPT = 200
"""Records that stay; older ones go when a new one begins."""

Event = dict[str, Any]

_failed: set[str] = set()


def note(kind: str, **fields: Any) -> None:
    """Add an event to the run that this process belongs to, if any. A record that cannot be written fails no run."""
    path = current_record()
    if path is None:
        return
    try:
        append(path, kind, **fields)
    except OSError as error:
        if str(path) not in _failed:
            _failed.add(str(path))
            print(f"rackwright: {path}: the record of this run has gaps: {error}", file=sys.stderr)


def current_record() -> Path | None:
    """Return the record of the run that this process belongs to, if any."""
    path = received().record
    return Path(path) if path else None


def append(path: Path, kind: str, **fields: Any) -> None:
    """Add an event to a record, in one write, so that lines never mix; fields that are None are left out.

    A line that a crash has cut is ended first, so that it takes no other with it. Raises OSError.
    """
    values = {key: printable_values(value) for key, value in fields.items() if value is not None}
    row = json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "kind": kind, **values})
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(file).st_size
        torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
        text = b"\n" * torn + f"{row}\n".encode()
        if os.write(file, text) < len(text):
            raise OSError(f"only a part of the event {kind} could be written")
    finally:
        os.close(file)


def folder_of(root: Path) -> Path:
    """Return where a site's records lie: $RACKWRIGHT_RUNS if set, else `runs/` in the site."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named).expanduser().absolute() if named else root.absolute() / FOLDER


def records(root: Path) -> list[Path]:
    """Return all records of a site, the oldest first."""
    return sorted(folder_of(root).glob("*.jsonl"), key=lambda path: order_of(path.stem))


def order_of(run: str) -> tuple[str, int]:
    """Return the second in which a run began, by its name, and its number among those of that second."""
    number = run.rpartition("-")[2]
    return run[:SECOND], int(number) if number.isdigit() and len(run) > SECOND else 1


def chosen_record(root: Path, name: str) -> Path:
    """Return the record of a run by its name, or the newest for `last`. Raises RackwrightError."""
    paths = records(root)
    found = paths[-1:] if name == "last" else [path for path in paths if path.stem == name]
    if not found:
        elsewhere = f"; what its hosts keep of a run: rackwright resume -i {name}" if Path(name).is_file() else ""
        ways = "rackwright runs" if paths else "rackwright rollout INVENTORY, or pyinfra INVENTORY deploy.py"
        why = "" if paths else ": no run has left a record there yet"
        raise RackwrightError(f"{folder_of(root)} has no run {name}{why}; next: {ways}{elsewhere}", code="RW0603")
    return found[0]


def keep_beside(name: str, content: bytes) -> Path | None:
    """Keep a file of the run that this process belongs to, readable by its user only, in the folder `runs/ID`.

    Returns its path; None without a record, or when it cannot be written: that must not fail a run.
    """
    record = current_record()
    if record is None:
        return None
    path = record.with_suffix("") / re.sub(r"[^\w.-]", "_", name)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with open(path, "wb", opener=lambda file, flags: os.open(file, flags, 0o600)) as file:
            file.write(content)
    except OSError:
        return None
    return path


def new_record(root: Path, purpose: str) -> Path:
    """Make the file of a new run of a site, named by its time and purpose; prune old ones. Raises RackwrightError."""
    folder = folder_of(root)
    second = f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
    try:
        make_folder(folder)
        _prune(root)
        number = len(list(folder.glob(f"{second}*.jsonl"))) + 1
        path = folder / (f"{second}-{purpose}.jsonl" if number == 1 else f"{second}-{purpose}-{number}.jsonl")
        path.touch(mode=0o600, exist_ok=False)
    except OSError as error:
        raise RackwrightError(
            f"{folder}: no record of the run can be kept: {error}; nothing was done", code="RW0604"
        ) from error
    return path


def adopt_record(root: Path, run: str, events: Iterable[Event]) -> Path:
    """Keep the record of a run that was begun elsewhere, whole or not at all. Raises RackwrightError."""
    folder = folder_of(root)
    path, new = folder / f"{run}.jsonl", folder / f".{run}.new"
    try:
        make_folder(folder)
        new.touch(mode=0o600)
        new.write_text("".join(f"{json.dumps(printable_values(event))}\n" for event in events))
        new.replace(path)
    except OSError as error:
        raise RackwrightError(
            f"{folder}: no record of the run can be kept: {error}; nothing was done", code="RW0604"
        ) from error
    return path


def make_folder(folder: Path) -> None:
    """Make the folder of the records, for its owner only, and invisible to git. Raises OSError."""
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True)
        (folder / ".gitignore").write_text("*\n")


def _prune(root: Path) -> None:
    """Remove the oldest records with everything that carries their name: reports, logs, folders of logs."""
    for old in records(root)[: -KEPT + 1]:
        for path in [*old.parent.glob(f"{old.stem}.*"), old.with_suffix("")]:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def read_record(path: Path) -> list[Event]:
    """Return the events of a run. A line that was cut by a crash is left out."""
    return list(_events(path.read_text(errors="replace").split("\n")))


def _events(lines: Iterable[str]) -> Iterable[Event]:
    for row in lines:
        try:
            event = json.loads(row)
        except ValueError:
            continue
        if isinstance(event, dict) and "kind" in event:
            yield event
