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
IN_A_ROW = 2


class Sample(NamedTuple):
    """Bytes that the source has, and those that the host before it has, at a time."""

    at: float
    source: int
    before: int
    whole: bool
    """The host before has everything: how fast it gives, only a try can tell."""


class SourceWatch:
    """The looks at one source. A source counts as slow only while this host has all that it has."""

    def __init__(self, now: float) -> None:
        self.since, self.slow = now, 0
        self.samples: list[Sample] = []
        self.edge = 0.0

    def at_edge(self, seconds: float) -> None:
        """Note time that this host spent waiting for the source to get more."""
        self.edge += seconds

    def is_due(self, now: float) -> bool:
        """Return True when it is time for a sample."""
        return now - self.since >= WINDOW

    def is_at_edge(self, now: float) -> bool:
        """Return True if this host mostly waited for the source, and is not what slows it."""
        return self.edge >= (now - self.since) / 2

    def skip(self, now: float) -> None:
        """Begin another window: this host was busy receiving, so the source is not what slows it."""
        self.since, self.edge, self.slow = now, 0.0, 0
        self.samples.clear()

    def add(self, sample: Sample, tried: bool) -> bool:
        """Add a sample. Return True if the source is to be passed. tried: it, or this host, did that already."""
        self.since, self.edge = sample.at, 0.0
        self.samples.append(sample)
        if len(self.samples) < 2:
            return False
        self.slow = self.slow + 1 if self._is_slow(self.samples[-2], sample, tried) else 0
        return self.slow >= IN_A_ROW

    def _is_slow(self, earlier: Sample, now: Sample, tried: bool) -> bool:
        gained, offered = now.source - earlier.source, now.before - earlier.before
        if now.before - now.source < LEAD:
            return False
        return not tried if now.whole else gained < SLOWER * offered
