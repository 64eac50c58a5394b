"""The chain of a host's work that decided how long its deploy took, from the end of the last piece backwards. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rackwright.record.progress import DOWNLOADING, LOADING, VERIFYING
from rackwright.record.view.timeline import HostTimeline, Timeline

BETWEEN = "between"
"""A path's name for time in which nothing of the host's is known to have gone on."""
SLACK = 0.5
"""Seconds without work that are not worth a piece of their own."""


@dataclass(frozen=True)
class Piece:
    """One link of the chain; seconds since 1970."""

    phase: str
    text: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Return how long it took."""
        return self.end - self.start

    @property
    def is_own(self) -> bool:
        """Return whether it is what a deploy cannot do without: a download, or the load of the model."""
        return self.phase in (DOWNLOADING, LOADING)


def critical_path(timeline: Timeline, host: HostTimeline) -> list[Piece]:
    """Return the host's chain in its order: each piece ended last of those before the one that follows it."""
    pieces = [piece for piece in _pieces(host) if piece.seconds > 0]
    found: list[Piece] = []
    cursor = max((piece.end for piece in pieces), default=0.0)
    while earlier := [piece for piece in pieces if piece.end <= cursor and piece not in found]:
        # Of those that ended together the longest held the others up.
        last = max(earlier, key=lambda piece: (piece.end, piece.seconds))
        found += [*_between(last.end, cursor), last]
        cursor = last.start
    if found and timeline.began is not None:
        found += _between(timeline.began, cursor)
    return found[::-1]


def _between(start: float, end: float) -> list[Piece]:
    return [Piece(BETWEEN, "", start, end)] if end - start > SLACK else []


def _pieces(host: HostTimeline) -> Iterator[Piece]:
    for span in host.spans:
        if span.end is not None and span.phase not in (DOWNLOADING, VERIFYING):
            yield Piece(span.phase, span.text, span.start, span.end)
    for fetch in host.fetches.values():
        if fetch.end is not None:
            ends = [host.fetches[name].end or 0.0 for name in fetch.after if name in host.fetches]
            yield Piece(DOWNLOADING, fetch.title, max([fetch.start, *ends]), fetch.end)


def own_part(path: list[Piece]) -> float:
    """Return the part of a path that its own downloads and its load took; 0 for an empty one."""
    whole = sum(piece.seconds for piece in path)
    return sum(piece.seconds for piece in path if piece.is_own) / whole if whole else 0.0
