"""The record of a run: one JSON line an event, in `runs/ID.jsonl` of the site. It never holds a secret.

Whoever starts a run names its file in an environment variable; without it nothing is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rackwright.errors import RackwrightError

VARIABLE = "RACKWRIGHT_RUN"
ROLLOUT = "RACKWRIGHT_ROLLOUT"
"""Set by `rackwright rollout` and `rollback`: waves and bakes, which a plain deploy has not."""
FOLDER = "runs"

Event = dict[str, Any]


def note(kind: str, **fields: Any) -> None:
    """Add an event to the run that this process belongs to, if any. One write a line, so that lines never mix."""
    path = os.environ.get(VARIABLE)
    if path:
        append(Path(path), kind, **fields)


def append(path: Path, kind: str, **fields: Any) -> None:
    """Add an event to a record; fields that are None are left out."""
    told = {key: value for key, value in fields.items() if value is not None}
    line = json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "kind": kind, **told})
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


def new_record(root: Path, purpose: str) -> Path:
    """The file of a new run below a site, named by its time and purpose. Raises RackwrightError."""
    folder = root / FOLDER
    name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{purpose}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        for number in range(1, 100):
            path = folder / (f"{name}.jsonl" if number == 1 else f"{name}-{number}.jsonl")
            if not path.exists():
                path.touch(mode=0o600)
                return path
    except OSError as error:
        raise RackwrightError(f"{folder}: no record of the run can be kept: {error}; nothing was done") from error
    raise RackwrightError(f"{folder}: a hundred runs began in this second; nothing was done")


def read_record(path: Path) -> list[Event]:
    """The events of a run. A last line that was cut by a crash is left out."""
    return list(_events(path.read_text().splitlines()))


def _events(lines: Iterable[str]) -> Iterable[Event]:
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and "kind" in event:
            yield event


@dataclass(frozen=True)
class Summary:
    """One run in a line."""

    id: str
    who: str
    what: str
    end: str
    hosts: dict[str, str]
    """Each host's last word: switched, unchanged, went back, quarantined, ..."""


def summary(run_id: str, events: Iterable[Event]) -> Summary:
    """What a record says of its run; a run without an end was cut, or still goes on."""
    who = what = ""
    end, hosts = "no end: cut, or still under way", dict[str, str]()
    for event in events:
        if event["kind"] == "begin":
            who, what = event.get("who", ""), event.get("what", "")
        elif event["kind"] == "host":
            hosts[event["host"]] = event["state"]
        elif event["kind"] == "end":
            end = f"exit {event['status']}: {event['text']}"
    return Summary(run_id, who, what, end, hosts)
