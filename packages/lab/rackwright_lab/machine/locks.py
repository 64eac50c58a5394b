"""Only one process at a time sets up, ends or fills; a lock goes with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

FOLDERS = (Path("/run/lock"), Path("/tmp"))


def _place(name: str) -> Path:
    folder = next(folder for folder in FOLDERS if folder.is_dir())
    return folder / f"rackwright-lab-{name}.lock"


@contextmanager
def only_one(name: str) -> Iterator[None]:
    """Wait until no other process holds the lock of this name, and hold it."""
    with _taken(_place(name)):
        yield


@contextmanager
def _taken(place: Path) -> Iterator[TextIO]:
    while True:
        with place.open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            # Its last holder may have removed the file while this one waited: then it is nobody's.
            if place.exists() and os.path.samestat(place.stat(), os.fstat(handle.fileno())):
                yield handle
                return


def forget(name: str) -> None:
    """Remove the file of a lock that this process holds."""
    _place(name).unlink(missing_ok=True)
