"""Lines for people and for the job: a line's first word says what it is."""

from __future__ import annotations

import time
from collections import Counter

EVERY = 2.0


def say(text: str, kind: str = "progress") -> None:
    """Print one line."""
    print(f"{kind}: {' '.join(text.split())}", flush=True)


def size(count: int) -> str:
    """Return bytes as text for people."""
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 30 else f"{max(count, 0) / (1 << 20):.1f} MiB"


class PullReport:
    """Progress of all files, every two seconds; `last` is when a byte arrived."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0
        self.last = self.said = time.monotonic()
        self.then = 0
        self.sources: Counter[str] = Counter()

    def add(self, count: int, source: str = "") -> None:
        """Count bytes that are here now."""
        self.done += count
        self.sources[source or "this host's disk"] += count
        self.last = time.monotonic()
        self.tick(f" from {source}" if source else ", read from this host's disk")

    def tick(self, source: str) -> None:
        """Print the line when it is time."""
        now = time.monotonic()
        if now - self.said < EVERY:
            return
        rate = (self.done - self.then) / (now - self.said) / (1 << 20)
        self.said, self.then = now, self.done
        share = 100 * self.done // max(1, self.total)
        say(f"{size(self.done)} of {size(self.total)} ({share}%), {rate:.1f} MiB/s{source}")

    def origins(self) -> str:
        """Return how much came from where."""
        return "; ".join(f"{size(count)} from {source}" for source, count in self.sources.most_common(8))

    def waiting(self, reason: str) -> None:
        """Print why nothing arrives."""
        self.tick(f"; waiting: {reason}")
