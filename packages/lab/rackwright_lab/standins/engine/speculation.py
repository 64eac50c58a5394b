"""Draft tokens proposed and accepted: deterministic numbers that look like a working draft model's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LOOKUPS = frozenset({"ngram", "ngram_gpu", "suffix", "lookahead"})
"""Ways of drafting that find the next words where they stood before: while a model counts they win nothing."""


@dataclass
class DraftStats:
    """What one request's drafting came to."""

    proposed: int = 0
    accepted: int = 0

    @property
    def acceptance_rate(self) -> float:
        """Return accepted over proposed draft tokens, 0 when nothing was proposed."""
        return self.accepted / self.proposed if self.proposed else 0.0


def draft_hits(tokens: int, draft_length: int, pattern: Sequence[int] = ()) -> list[int]:
    """Return, for each iteration of a request of so many completion tokens, how many drafted ones were right.

    pattern: how many each iteration in turn gets right, over and over; without one, two thirds, with a full hit and a
    full miss now and then.
    """
    turns = pattern or (2, 1, draft_length, 2, 0, 2)
    made, hits = 0, list[int]()
    while made < tokens:
        hits.append(min(turns[len(hits) % len(turns)], draft_length, tokens - made - 1))
        made += hits[-1] + 1
    return hits


def draft_steps(
    tokens: int, draft_length: int, wins: bool = True, pattern: Sequence[int] = ()
) -> tuple[int, DraftStats]:
    """Return (iterations, stats) that a request of so many completion tokens takes; no drafting: one each.

    wins: False for drafts that are proposed and never right. pattern: as `draft_hits` has it.
    """
    if draft_length == 0:
        return tokens, DraftStats()
    hits = draft_hits(tokens, draft_length if wins else 0, pattern)
    return len(hits), DraftStats(draft_length * len(hits), sum(hits))
