"""The choice of a source: the present one, the nearest, then some of the others, none that failed a moment ago."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from rackwright.hostside.hand_on.failures import NoPiecesError
from rackwright.hostside.hand_on.spec import SourceHost

NEAR, OTHERS = 4, 4
"""Sources that each round asks: always the first of the list, and in turn some of the rest."""
BEFORE = 3
"""Hosts before a source with which it is compared: two slow ones may follow each other."""
PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds for which a source that failed is left alone: twice as long each time."""
SETTLE = 6.0
"""Seconds for which only the neighbour is asked at the start: all hosts begin within a few seconds."""


class SourceChoice:
    """The sources of a run. `current` gives now; `passing`: the address of one that is to be left out for good.

    is_late: this host was passed. It takes its bytes at the end of the chain, where it may hurry no one.
    """

    def __init__(self, sources: Sequence[SourceHost], now: Callable[[], float]) -> None:
        self.sources, self.now, self.start = list(sources), now, now()
        self.current: SourceHost | None = None
        self.passing, self.round, self.is_late = "", 0, False
        self.resting: dict[SourceHost, tuple[float, float]] = {}
        """Sources that failed: until when they are left alone, and for how long."""
        self.reasons: dict[str, str] = {}
        """Why a source gave nothing, by its name."""

    def candidates(self, begins: bool) -> Iterator[SourceHost]:
        """List the sources of a round. begins: nothing is here yet."""
        self.round += 1
        near, far = self.sources[:NEAR], self.sources[NEAR:]
        if begins and self.now() < self.start + SETTLE:
            near, far = near[:1], []
        first = self.round * OTHERS % len(far) if far else 0
        listed = [*([self.current] if self.current else []), *near, *(far[first:] + far[:first])[:OTHERS]]
        for source in dict.fromkeys(listed):
            if source in self.sources and self.resting.get(source, (0.0, 0.0))[0] <= self.now():
                yield source

    def is_neighbour(self, source: SourceHost) -> bool:
        """Return True for the first of the list."""
        return self.sources[:1] == [source]

    def before(self, source: SourceHost) -> Sequence[SourceHost]:
        """Return those from which a source may get its bytes, the nearest first, in the order of the list."""
        return self.sources[self.sources.index(source) + 1 :][:BEFORE] if source in self.sources else ()

    def take(self, source: SourceHost) -> bool:
        """Note that a source gives. Return True if it is another one than before."""
        other, self.current = source != self.current, source
        self.resting.pop(source, None)
        if other:
            self.passing = ""
        return other

    def leave(self, reason: str = "") -> None:
        """Choose again."""
        if self.current and reason:
            self.reasons[self.current.name] = reason
        self.current = None

    def give_way(self, source: SourceHost, passed: bool) -> None:
        """Choose again where a source serves another host. passed: since that one found this host slow."""
        self.is_late = self.is_late or passed
        self.leave()
        self.reasons[source.name] = "it serves another host"

    def leave_out(self, source: SourceHost, passing: bool) -> None:
        """Leave a source for one that has more; it is asked again when none has. passing: this host takes its place."""
        self.passing = source.address if passing else ""
        self.resting[source] = (self.now() + PAUSE, PAUSE)
        self.current = None

    def fail(self, source: SourceHost, error: NoPiecesError) -> None:
        """Leave a source alone for a while."""
        pause = self.resting.get(source, (0.0, PAUSE))[1]
        self.resting[source] = (self.now() + max(pause, error.wait), min(2 * pause, LONGEST_PAUSE))
        self.reasons[source.name] = str(error)
        self.current = None

    def drop(self, names: Collection[str]) -> None:
        """Ask these sources for nothing again."""
        self.sources = [source for source in self.sources if source.name not in names]
        self.current = None

    def why(self, latest: int) -> str:
        """Return why the sources gave nothing."""
        return "; ".join(f"{name}: {reason}" for name, reason in list(self.reasons.items())[-latest:])
