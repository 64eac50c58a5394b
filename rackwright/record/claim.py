"""One process at a time resumes a run: it holds the lock of a file beside the run's record, and its name is in it."""

from __future__ import annotations

import fcntl
import getpass
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from rackwright.messages import RackwrightError
from rackwright.processes import this_process


@contextmanager
def claimed(record: Path) -> Iterator[None]:
    """Hold a run for this process, until it ends.

    Raises RackwrightError, naming the process that resumes it already.
    """
    path = record.with_suffix(".resume")
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise RackwrightError(f"{path} cannot be written: {error}; nothing was done", code="RW0601") from error
    try:
        _lock(handle, record.stem)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, run: str) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RackwrightError(
            f"run {run} is being resumed already, by {_holder(handle)}; nothing was done; next: wait for it, then "
            "rackwright runs",
            code="RW0602",
        ) from None
    holder = {"user": getpass.getuser(), "since": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}", **this_process()}
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{json.dumps(holder)}\n".encode(), 0)


def _holder(handle: int) -> str:
    try:
        holder = json.loads(os.pread(handle, 4096, 0))
        return f"{holder['user']}@{holder['machine']} (process {holder['pid']}) since {holder['since']} UTC"
    except (ValueError, KeyError, TypeError):
        return "another process"
