"""Whether the source is slower than the one before it: two measured windows in a row say so. Pure decisions."""

from __future__ import annotations

from typing import NamedTuple

from rackwright.hostside.hand_on.pieces import PIECE

WINDOW = 3.0
"""Seconds between two looks at the host before the source."""
SLOWER = 0.75
"""Share of the rate of the host before it under which a source is passed: one of half the rate is, safely."""
LEAD = 4 * PIECE
"""Bytes by which the host before must be ahead: a piece or two is how every chain runs."""
EDGE = 3 * PIECE
"""Bytes behind its source by which a host still waits for it: a piece on its way, and one that is compared."""
IN_A_ROW = 2


class Sample(NamedTuple):
    """Bytes that the source has, and those that the host before it has, at a time."""

    at: float
    source: int
    before: int
    whole: bool
    """The host before has everything: how fast it gives, only a try can tell."""
    of: str = ""
    """The name of that host. Two looks at different ones are not compared."""


class SourceWatch:
    """The looks at one source. A source counts as slow only while this host has all that it has."""

    def __init__(self, now: float) -> None:
        self.since, self.slow = now, 0
        self.samples: list[Sample] = []

    def is_due(self, now: float) -> bool:
        """Return True when it is time for a look."""
        return now - self.since >= WINDOW

    def skip(self, now: float) -> None:
        """Begin again: the source is not what slows this host, or it waits for its own source."""
        self.since, self.slow = now, 0
        self.samples.clear()

    def add(self, sample: Sample, tried: bool) -> bool:
        """Add a sample. Return True if the source is to be passed. tried: it, or this host, did that already."""
        self.since = sample.at
        self.samples.append(sample)
        if len(self.samples) < 2:
            return False
        self.slow = self.slow + 1 if self._is_slow(self.samples[-2], sample, tried) else 0
        return self.slow >= IN_A_ROW

    def _is_slow(self, earlier: Sample, now: Sample, tried: bool) -> bool:
        gained, offered = now.source - earlier.source, now.before - earlier.before
        if now.of != earlier.of or now.before - now.source < LEAD:
            return False
        return not tried if now.whole else gained < SLOWER * offered
