"""The rate of drafted tokens that a server accepted, in words and beside the release before. Pure.

One text is asked greedily, so a figure's noise is that of its own verification steps: their spread, not a guess.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WEAK = 1.2
"""Tokens a step below which a draft is hardly worth its own cost; 1 without a single accepted draft."""
KEEPS, KEEPS_LOOSELY = 0.75, 0.5
"""Part of what drafting gained before that the next release must keep: of the same text, and of another one, which is
another model's or other clients'."""
SIGMAS = 2.6
"""Distance beyond which a difference is not chance: 99 %."""


@dataclass(frozen=True)
class Drafted:
    """The server's figures for the drafts of the row's own requests."""

    accepted: float
    proposed: float | None = None
    rate: float | None = None
    """Tokens a step; 1 without a single accepted draft."""
    steps: float | None = None
    positions: tuple[float, ...] = ()
    """Accepted tokens by their place in the draft; empty where the server does not say."""
    shared: bool = False
    """True where requests of other clients were counted too."""
    keeps: float = KEEPS
    """Of this release's gain, when it is the one before; 0 where nothing can be compared with it."""

    def in_words(self, method: str) -> str:
        """For people."""
        of = f" of {self.proposed:.0f} draft tokens" if self.proposed is not None else " draft tokens"
        rate = f", {self.rate:.2f} tokens a step" if self.rate is not None else ""
        shared = ", other clients' requests among them" if self.shared else ""
        return f"{self.accepted:.0f}{of} accepted{rate}{self._by_position()} ({method}){shared}"

    def _by_position(self) -> str:
        if not self.positions or not self.steps or self.accepted <= 0:
            return ""
        return f"; by position {', '.join(f'{one:.0f}' for one in self.positions)} of {self.steps:.0f}"

    @property
    def is_weak(self) -> bool:
        """True where drafting gains next to nothing."""
        if self.rate is not None:
            return self.rate < WEAK
        length = max(len(self.positions), 1)
        return bool(self.proposed) and self.accepted * length / (self.proposed or 1) < WEAK - 1


def worse(before: Drafted, now: Drafted) -> bool:
    """Return True if drafting gains clearly less than with the release before: beyond chance, and by a good part."""
    depth = min(len(before.positions), len(now.positions))
    old, new = _gain(before, depth), _gain(now, depth)
    if old is None or new is None or not before.keeps or not now.keeps:
        return False
    keeps = KEEPS_LOOSELY if before.shared or now.shared else min(before.keeps, now.keeps)
    return new[0] < old[0] * keeps and old[0] - new[0] > SIGMAS * math.hypot(old[1], new[1])


def _gain(drafted: Drafted, depth: int) -> tuple[float, float] | None:
    """Return accepted tokens a step and their standard error; to the same depth of both, where they are known."""
    if not drafted.steps or drafted.rate is None:
        return None
    if depth:
        return _by_depth([min(one / drafted.steps, 1.0) for one in drafted.positions[:depth]], drafted.steps)
    gain = max(drafted.rate - 1, 0.0)
    # Without positions: as if each draft ended at its first wrong token by the same chance.
    return gain, math.sqrt((gain + gain**2 + 1 / drafted.steps) / drafted.steps)


def _by_depth(shares: Sequence[float], steps: float) -> tuple[float, float]:
    """Return mean and spread of a step's accepted tokens, by position; two more steps soften the ends."""
    soft = [(share * steps + 1) / (steps + 2) for share in shares]
    mean = sum(soft)
    square = sum((2 * position + 1) * share for position, share in enumerate(soft))
    return sum(shares), math.sqrt(max(square - mean**2, 0.0) / steps)
