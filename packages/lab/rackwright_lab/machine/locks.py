"""Only one process at a time sets up, ends or fills; a lock goes with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

FOLDERS = (Path("/run/lock"), Path("/tmp"))


def _path(name: str) -> Path:
    folder = next(folder for folder in FOLDERS if folder.is_dir())
    return folder / f"rackwright-lab-{name}.lock"


@contextmanager
def only_one(name: str) -> Iterator[None]:
    """Wait until no other process holds the lock of this name, and hold it."""
    with _taken(_path(name)):
        yield


@contextmanager
def _taken(path: Path) -> Iterator[TextIO]:
    while True:
        with path.open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            # Its last holder may have removed the file while this one waited: then this lock is void.
            if path.exists() and os.path.samestat(path.stat(), os.fstat(handle.fileno())):
                yield handle
                return


def forget(name: str) -> None:
    """Remove the file of a lock that this process holds."""
    _path(name).unlink(missing_ok=True)
