"""Who this process is to the hosts that it changes, and whether a process that holds a lease still lives here."""

from __future__ import annotations

import getpass
import os
import re
import socket
import sys
from functools import cache
from pathlib import Path
from uuid import uuid4

from rackwright.fleet.journal import VARIABLE
from rackwright.lease import Owner

LONGEST = 120


@cache
def run_word() -> str:
    """A word of this process's own, which no other run has."""
    return uuid4().hex[:8]


@cache
def this_owner() -> Owner:
    """This process as the owner of leases."""
    pid = os.getpid()
    user, machine = _plain(getpass.getuser()), _plain(socket.gethostname())
    return Owner(user, machine, _plain(purpose()), place(), pid, started(pid) or 0)


def purpose() -> str:
    """What this process is for: the run's record, or the command and its deploy file; never its `--data`."""
    record = os.environ.get(VARIABLE)
    if record:
        return f"run {Path(record).stem}"
    command = Path(sys.argv[0]).name if sys.argv else "rackwright"
    deploys = [Path(word).name for word in sys.argv[1:] if word.endswith(".py")]
    return " ".join([command, *deploys])


def _plain(text: str) -> str:
    return re.sub(r"[^\x20-\x7e]", "?", text)[:LONGEST]


@cache
def place() -> str:
    """Machine, boot and process namespace; empty where that cannot be told (no Linux)."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return _plain(f"{socket.gethostname()} {boot} {Path('/proc/self/ns/pid').readlink()}")
    except OSError:
        return ""


def started(pid: int) -> int | None:
    """When a process was started, in ticks since the boot; None when there is none, or only its remains."""
    try:
        # Its name stands in brackets and may hold any byte, brackets too.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def is_gone(owner: Owner) -> bool:
    """Whether the owner was a process of this machine and has ended; False when that cannot be told."""
    return bool(owner.place) and owner.place == place() and started(owner.pid) != owner.started
