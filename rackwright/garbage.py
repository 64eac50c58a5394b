"""Garbage collection tuned for a process that runs for seconds and frees little."""

from __future__ import annotations

import atexit
import gc

SELDOM = 50_000
"""New objects between two searches. Python's own number is 700; some 78,000 stay of pyinfra and us."""


def collect_seldom() -> None:
    """Leave what is loaded now out of every search, of that at the process's end too, and search seldom from now on.

    Safe to repeat.
    """
    gc.freeze()
    gc.set_threshold(SELDOM, *gc.get_threshold()[1:])
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
