"""The identity of this process towards hosts, and whether a process that holds a lease still runs here."""

from __future__ import annotations

import getpass
import os
import re
import sys
from functools import cache
from pathlib import Path
from uuid import uuid4

from rackwright.concerns.lease import LeaseHolder
from rackwright.processes import boot, started
from rackwright.record.journal import current_record

LONGEST = 120


@cache
def run_word() -> str:
    """Return a random text of this process, which no other run has."""
    return uuid4().hex[:8]


@cache
def this_holder() -> LeaseHolder:
    """Return this process as the holder of leases."""
    pid = os.getpid()
    user, machine = _plain(getpass.getuser()), _plain(os.uname().nodename)
    return LeaseHolder(user, machine, _plain(purpose()), scope(), pid, started(pid) or 0)


def purpose() -> str:
    """Return the purpose of this process: the command with its files, and the run's record; never its `--data`."""
    words = [command_name(), *(Path(argument).name for argument in sys.argv[1:] if argument.endswith(".py"))]
    record = current_record()
    return " ".join(words) + (f", run {record.stem}" if record else "")


def command_name() -> str:
    """Return the name of the started command, or of the package that was started as a module."""
    path = Path(sys.argv[0] if sys.argv else "rackwright")
    return path.parent.name if path.name == "__main__.py" else path.name


def _plain(text: str) -> str:
    return re.sub(r"[^\x20-\x7e]", "?", text)[:LONGEST]


@cache
def scope() -> str:
    """Return machine, boot and process namespace; empty where unknown (not Linux)."""
    try:
        # Containers of one machine may share its name, and its boot, but not their processes.
        namespace = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return ""
    return _plain(f"{os.uname().nodename} {boot()} {namespace}")


def is_gone(holder: LeaseHolder) -> bool:
    """Return True if the holder was a process of this machine and has ended; False when unknown."""
    return bool(holder.place) and holder.place == scope() and started(holder.pid) != holder.started
