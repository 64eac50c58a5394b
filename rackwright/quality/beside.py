"""How fast a release is beside its peers: pairs of figures that were taken at the same time, and their verdict. Pure.

A pair is the canary's seconds over the median of its peers' in the same window, so that what the hour brings, longer
prompts or fuller batches, is on both sides. Two figures are judged: seconds to the first token, and tokens a second of
a stream, which is what a client sees; the sum over all streams would say how much traffic a host gets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from rackwright.quality.median_interval import fewest_values, median_interval

FEWEST = fewest_values()
"""Pairs without which nothing is judged."""


@dataclass(frozen=True)
class HostPace:
    """How fast a host was in a window; None for what it did not show, or did too seldom."""

    first: float | None = None
    """Seconds to the first token."""
    token: float | None = None
    """Seconds a token after it."""


@dataclass(frozen=True)
class PacePair:
    """A canary and its peers in one window."""

    canary: HostPace
    peers: Mapping[str, HostPace]
    """By host."""

    def ratio(self, figure: str) -> float | None:
        """Return the canary's figure over its peers' median; None without both."""
        others = [value for pace in self.peers.values() if (value := getattr(pace, figure))]
        canary: float | None = getattr(self.canary, figure)
        return canary / median(others) if canary and others else None


@dataclass(frozen=True)
class Slowdown:
    """Ratios of one figure, one a pair: above 1 is slower."""

    ratios: Sequence[float]

    @property
    def is_judged(self) -> bool:
        """True if there are enough of them for an interval."""
        return len(self.ratios) >= FEWEST

    @cached_property
    def ends(self) -> tuple[float, float, float]:
        """Return the median, the better end and the worse one."""
        return median_interval(self.ratios)


@dataclass(frozen=True)
class BesidePeers:
    """All pairs of a canary and its peers, beside what is allowed."""

    pairs: Sequence[PacePair]
    slower_by: float
    """Per cent by which it may be slower."""

    @cached_property
    def first(self) -> Slowdown:
        """Seconds to the first token."""
        return self._of("first")

    @cached_property
    def token(self) -> Slowdown:
        """Seconds a token."""
        return self._of("token")

    def _of(self, figure: str) -> Slowdown:
        found = (pair.ratio(figure) for pair in self.pairs)
        return Slowdown([ratio for ratio in found if ratio is not None])

    @property
    def is_judged(self) -> bool:
        """True if either figure has enough pairs."""
        return self.first.is_judged or self.token.is_judged

    @property
    def slower(self) -> bool:
        """Return True if even the better end of an interval is slower than allowed: the release is refused."""
        share = self.slower_by / 100
        return self.first.ends[1] > 1 + share or 1 / max(self.token.ends[1], 1e-9) < 1 - share

    @property
    def sentence(self) -> str:
        """Return what was found of both figures, each with its interval or with what could have been found."""
        peers = sorted({name for pair in self.pairs for name in pair.peers})
        than = f"than its {len(peers)} peers" if len(peers) != 1 else "than its peer"
        return f"{_first(self.first, than)}, {_token(self.token)}{self._apart}"

    @property
    def _apart(self) -> str:
        """Return how far peers are apart themselves: a host differs from another one by so much without any change."""
        apart = self.spread
        return f"; its peers differ by up to {percent(apart)} among themselves" if apart >= 0.005 else ""

    @cached_property
    def spread(self) -> float:
        """Return by how much the slowest peer's seconds a token, or to the first one, are above the fastest one's."""
        return max(_spread(self.pairs, figure) for figure in ("first", "token"))

    def figures(self) -> tuple[float | None, float | None]:
        """Return seconds a token, the canary's and its peers', as medians of all pairs; None without."""
        canary = [pair.canary.token for pair in self.pairs if pair.canary.token]
        others = [pace.token for pair in self.pairs for pace in pair.peers.values() if pace.token]
        return (median(canary) if canary else None), (median(others) if others else None)


def _spread(pairs: Sequence[PacePair], figure: str) -> float:
    by_host: dict[str, list[float]] = {}
    for pair in pairs:
        for name, pace in pair.peers.items():
            if value := getattr(pace, figure):
                by_host.setdefault(name, []).append(value)
    middles = [median(values) for values in by_host.values() if len(values) >= FEWEST]
    return max(middles) / min(middles) - 1 if len(middles) > 1 else 0.0


def _first(found: Slowdown, than: str) -> str:
    if not found.is_judged:
        return f"time to the first token not measurable ({_pairs(len(found.ratios))})"
    middle, low, high = found.ends
    if low <= 1 <= high:
        return f"no difference to the first token {_could(found)} ({percent(1 / low - 1)} would be)"
    if low > 1:
        return f"{percent(middle - 1)} slower to the first token {than} ({_to(low - 1, high - 1)})"
    return f"{percent(1 - middle)} faster to the first token {than} ({_to(1 - high, 1 - low)})"


def _token(found: Slowdown) -> str:
    if not found.is_judged:
        return f"tokens a second not measurable ({_pairs(len(found.ratios))})"
    middle, low, high = found.ends
    if low <= 1 <= high:
        return f"no difference in tokens a second {_could(found)} ({percent(1 - low)} would be)"
    if low > 1:
        return f"{percent(1 - 1 / middle)} fewer tokens a second ({_to(1 - 1 / low, 1 - 1 / high)})"
    return f"{percent(1 / middle - 1)} more tokens a second ({_to(1 / high - 1, 1 / low - 1)})"


def _could(found: Slowdown) -> str:
    return f"that {_pairs(len(found.ratios))} could show"


def percent(share: float) -> str:
    """Return a share as per cent: whole ones from 10 on, with one decimal below."""
    return f"{_number(share)} %"


def _to(low: float, high: float) -> str:
    return f"{_number(low)} to {_number(high)} %"


def _number(share: float) -> str:
    value = 100 * share
    return f"{value:.0f}" if value >= 10 else f"{round(value, 1) + 0.0:g}"


def _pairs(number: int) -> str:
    return f"{number} pair" if number == 1 else f"{number} pairs"
