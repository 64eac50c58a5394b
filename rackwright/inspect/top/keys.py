"""The keys that are pressed while a picture stands; the terminal is left as it was."""

from __future__ import annotations

import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

QUIT = "qQ\x1b"


@contextmanager
def quit_pressed() -> Iterator[Callable[[float], bool]]:
    """Give a function that waits so many seconds for a key, and returns True for one that ends the picture."""
    if not sys.stdin.isatty():
        yield _pause
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield _is_quit
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _pause(seconds: float) -> bool:
    select.select([], [], [], seconds)
    return False


def _is_quit(seconds: float) -> bool:
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return bool(ready) and sys.stdin.read(1) in QUIT
