"""One process at a time writes in a folder of the control machine."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def one_writer(folder: Path) -> Iterator[None]:
    """Wait for, and hold, the lock of a folder. The folder itself carries it: a file would have to be kept for ever."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
