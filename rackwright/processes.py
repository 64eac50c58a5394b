"""The process of a machine that something belongs to, and whether it still lives. A pid alone is reused."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from rackwright.adapter.concurrency import in_main_thread

PROC = Path("/proc")
ENDING = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}
"""Signals that end a command in order, as users know them."""


class Terminated(KeyboardInterrupt):
    """A signal that came to this process alone; a terminal's Ctrl-C comes to its children too."""

    def __init__(self, number: int = signal.SIGTERM) -> None:
        super().__init__(f"stopped by {ENDING[signal.Signals(number)]}")
        self.number = number


class ReportedInterrupt(KeyboardInterrupt):
    """An interrupt whose sentence is printed already."""


def interruption(number: int) -> KeyboardInterrupt:
    """Return the exception of a signal that ends a command."""
    return KeyboardInterrupt() if number == signal.SIGINT else Terminated(number)


def end_undisturbed() -> None:
    """Let no further signal change the exit status of a process that was interrupted and now ends.

    While Python finalizes it gives signals their default action back, but for ignored ones: a second Ctrl-C would kill.
    """
    atexit.register(_ignore_ending)
    # A channel that was cut in the middle of a wait cannot be closed by then, and would say so with a traceback.
    sys.unraisablehook = lambda _: None


def _ignore_ending() -> None:
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Raise Terminated on SIGTERM and SIGHUP in the block: what Ctrl-C cleans up is cleaned up for them too."""
    if not in_main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING if number != signal.SIGINT}
    for number, handler in before.items():
        # One that was ignored from the start on (nohup) stays ignored.
        if handler != signal.SIG_IGN:
            signal.signal(number, _terminate)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _terminate(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - Python passes both
    raise Terminated(number)


def this_process() -> dict[str, Any]:
    """Return the machine, boot, pid and start of this process, as plain values for a record.

    `started` and `boot` are None on systems without /proc.
    """
    return {"machine": socket.gethostname(), "boot": boot(), "pid": os.getpid(), "started": started(os.getpid())}


def module(name: str) -> list[str]:
    """Return the command line of a module run by this Python, wherever its own commands are.

    `-P`: the user's current folder must not be imported from.
    """
    return [sys.executable, "-P", "-m", name]


def lives(process: Mapping[str, Any]) -> bool | None:
    """Return whether such a process still runs; None when it belongs to another machine and cannot be seen here."""
    if process.get("machine") != socket.gethostname():
        return None
    if process.get("boot") != boot():
        return False
    pid = int(process["pid"])
    if boot() is None:
        return _answers(pid)
    return started(pid) is not None and started(pid) == process.get("started")


def boot() -> str | None:
    """Return the ID of this machine's present boot; None on systems without /proc."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def started(pid: int) -> int | None:
    """Return clock ticks from boot to a process's start (proc(5), field 22); None when it is gone, or a zombie."""
    try:
        words = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if words[0] in "ZX" else int(words[19])


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
