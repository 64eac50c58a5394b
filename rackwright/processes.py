"""Which process of which machine something belongs to, and whether it still lives. A pid alone is reused."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROC = Path("/proc")


def this_process() -> dict[str, Any]:
    """Machine, boot, pid and start of this process, as plain values for a record.

    `started` and `boot` are None on systems without /proc.
    """
    return {"machine": socket.gethostname(), "boot": boot(), "pid": os.getpid(), "started": started(os.getpid())}


def module(name: str) -> list[str]:
    """The words that start a module as a command of the running Python, wherever its own commands lie.

    `-P`: the folder in which the user stands is no place to import from.
    """
    return [sys.executable, "-P", "-m", name]


def lives(process: Mapping[str, Any]) -> bool | None:
    """Whether such a process still runs; None when it belongs to another machine, so that nobody here can tell."""
    if process.get("machine") != socket.gethostname():
        return None
    if process.get("boot") != boot():
        return False
    pid = int(process["pid"])
    if boot() is None:
        return _answers(pid)
    return started(pid) is not None and started(pid) == process.get("started")


def boot() -> str | None:
    """Word of this machine's present boot; None on systems without /proc."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def started(pid: int) -> int | None:
    """Clock ticks from boot to a process's start (proc(5), field 22); None when it is gone, or a zombie."""
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
