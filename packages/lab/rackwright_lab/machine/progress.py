"""Calm progress: one line a step with the seconds since the start, and a sign of life in long steps."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

SIGN_OF_LIFE = 10.0


class Progress:
    """Prints the steps of one command; safe to use from several threads."""

    def __init__(self, out: TextIO | None = None, quiet: bool = False) -> None:
        self._out = out or sys.stderr
        self._quiet = quiet
        self._start = time.monotonic()
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        """Print one line with the seconds since the start."""
        if self._quiet:
            return
        with self._lock:
            print(f"{time.monotonic() - self._start:7.1f} s  {text}", file=self._out, flush=True)

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Name a step before it runs, and say every ten seconds that it still does."""
        self.say(text)
        over = threading.Event()
        begun = time.monotonic()

        def tick() -> None:
            while not over.wait(SIGN_OF_LIFE):
                self.say(f"... still at it after {time.monotonic() - begun:.0f} s: {text}")

        threading.Thread(target=tick, daemon=True).start()
        try:
            yield
        finally:
            over.set()
