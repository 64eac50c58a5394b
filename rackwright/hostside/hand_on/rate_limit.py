"""A rate that several threads keep together."""

from __future__ import annotations

import threading
import time

BLOCK = 1 << 18
BURST = 0.25
"""Seconds whose bytes may go at once after a pause."""


class RateLimit:
    """Holds back those that are ahead of a rate in bytes a second; None: no limit."""

    def __init__(self, rate: float | None) -> None:
        self.rate = rate
        self.lock = threading.Lock()
        self.due = 0.0

    @property
    def block(self) -> int:
        """Return the bytes to move at a time, so that a low rate is even."""
        return BLOCK if self.rate is None else max(1 << 12, min(BLOCK, int(self.rate * BURST)))

    def spend(self, size: int) -> None:
        """Wait until so many bytes may have gone."""
        if self.rate is None:
            return
        with self.lock:
            now = time.monotonic()
            self.due = max(self.due, now - BURST) + size / self.rate
            wait = self.due - now
        if wait > 0:
            time.sleep(wait)
