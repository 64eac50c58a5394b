"""Runs pyinfra to its end, with its own output or behind the live view of the run's record.

Ctrl-C reaches pyinfra as well, which then ends on its own; hosts finish what they have begun.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from rackwright.messages import printable
from rackwright.processes import Terminated, ended_in_order
from rackwright.record.durations import switch_time
from rackwright.record.journal import Event, read_record
from rackwright.record.states import NOT_REACHED
from rackwright.record.view.timeline import Timeline
from rackwright.record.view.timeline_events import add_event, timeline_of
from rackwright.tables import folded, shown_width

REFRESH = 0.25
"""Seconds between two pictures."""
PATIENCE = (10.0, 10.0)
"""Seconds for pyinfra to give its leases back before it is sent the signal (again), and until it is ended."""
HOSTS, LINES = 10, 25
"""Failed hosts that are listed after the view, and lines of each."""


class GrowingRecord:
    """A record that grows. A line that is not whole yet waits."""

    def __init__(self, path: Path) -> None:
        self.path, self.offset = path, 0

    def new_events(self) -> Iterator[Event]:
        """Yield the events since the last call."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            whole, _, _ = file.read().rpartition(b"\n")
        self.offset += len(whole) + 1 if whole else 0
        for row in whole.splitlines():
            with suppress(ValueError):
                event = json.loads(row)
                if isinstance(event, dict) and "kind" in event:
                    yield event


def is_terminal() -> bool:
    """Return True when a picture can be drawn, and a user looks at it."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def follow(words: Sequence[str], cwd: Path, environment: Mapping[str, str], record: Path, view: bool) -> int:
    """Run a command that adds to a record; returns its exit status. Raises KeyboardInterrupt, once it has ended.

    view: draw the record while it grows, and keep what the command prints in a file beside the record.
    """
    with ended_in_order():
        return _follow(words, cwd, environment, record, view)


def _follow(words: Sequence[str], cwd: Path, environment: Mapping[str, str], record: Path, view: bool) -> int:
    if not view:
        return _wait(subprocess.Popen(words, cwd=cwd, env=environment))
    log, growing = record.with_suffix(".log"), GrowingRecord(record)
    earlier = list(growing.new_events())
    print(f"rackwright: what pyinfra prints goes to {log}", flush=True)
    with _private(log) as file:
        start = log.stat().st_size
        process = subprocess.Popen(
            words, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
        )
        timeline = timeline_of(earlier)
        timeline.typical = switch_time(sorted(one for one in record.parent.glob("*.jsonl") if one != record))
        _draw_safely(process, timeline, growing)
        status = _wait(process)
    printed = log.read_bytes()[start:].decode(errors="replace")
    for row in unshown_errors(read_record(record)[len(earlier) :], status, printed):
        print(folded(printable(row), shown_width()), flush=True)
    return status


def _wait(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait()
    except KeyboardInterrupt as error:
        _end(process, error)
        raise


def _end(process: subprocess.Popen[bytes], error: KeyboardInterrupt) -> None:
    """Pass SIGINT on where it came to this process alone; a terminal has sent it to pyinfra too."""
    if isinstance(error, Terminated):
        process.send_signal(error.number)
    for number, patience in zip((signal.SIGINT, signal.SIGKILL), PATIENCE, strict=True):
        try:
            process.wait(patience)
            return
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.send_signal(number)
    process.wait()


@contextmanager
def _private(path: Path) -> Iterator[IO[bytes]]:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "wb") as file:
        yield file


def _draw_safely(process: subprocess.Popen[bytes], timeline: Timeline, growing: GrowingRecord) -> None:
    """Draw, and never end a rollout because a picture cannot be drawn."""
    try:
        _draw(process, timeline, growing)
    except KeyboardInterrupt as error:
        _end(process, error)
        raise
    except Exception as error:
        print(f"rackwright: the view has ended ({type(error).__name__}: {error}), the run continues", flush=True)


def _draw(process: subprocess.Popen[bytes], timeline: Timeline, growing: GrowingRecord) -> None:
    """Draw until the end; nothing before the first word of a host, since a password may be asked for until then."""
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.live import Live  # noqa: PLC0415

    from rackwright.record.view.screen import draw  # noqa: PLC0415

    console = Console()

    def add_new_events() -> bool:
        """Add what is new; return whether it is about a host."""
        events = list(growing.new_events())
        for event in events:
            add_event(timeline, event)
        return any("host" in event for event in events)

    while not add_new_events():
        if _ended(process):
            return
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        over = False
        while not over:
            over = _ended(process)
            add_new_events()
            live.update(draw(timeline, time.time(), console.height, console.width), refresh=True)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the process has ended, after a short wait for it."""
    try:
        process.wait(REFRESH)
    except subprocess.TimeoutExpired:
        return False
    return True


# -- after the end


def unshown_errors(events: Sequence[Event], status: int, printed: str) -> Iterator[str]:
    """Yield what the view could not show: each failed host's errors, with the last lines that were printed of it.

    Hosts that were not switched because of others are left out. events: those of this command. printed: all that it
    has printed.
    """
    errors: dict[str, list[str]] = {}
    for event in events:
        if text := _error_in(event):
            errors.setdefault(str(event.get("host")), []).append(text)
    for host, texts in list(errors.items())[:HOSTS]:
        yield f"{host}:"
        yield from (f"    {row}" for row in printed_of(host, printed, texts))
    if len(errors) > HOSTS:
        yield f"and {len(errors) - HOSTS} more hosts: the report has them all"
    if status != 0 and not errors:
        yield from printed.splitlines()[-LINES:]


def _error_in(event: Event) -> str:
    text = str(event.get("text", ""))
    if event["kind"] == "error":
        return text
    lost = event["kind"] == "host" and event.get("state") in NOT_REACHED
    return text or str(event["state"]) if lost else ""


def printed_of(host: str, printed: str, errors: Sequence[str]) -> list[str]:
    """Return the last lines of a host, or its errors when nothing was printed of it."""
    start = f"[{host}] "
    lines = [row.strip().removeprefix(start).rstrip() for row in printed.splitlines() if row.strip().startswith(start)]
    return lines[-LINES:] or [row for text in errors for row in text.splitlines()]
