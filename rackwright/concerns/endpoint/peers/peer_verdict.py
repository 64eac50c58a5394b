"""The verdict on a canary beside its peers, as a row of the gate. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rackwright.concerns.endpoint.peers.peer_check import PeerCheck
from rackwright.concerns.endpoint.proof.proof_row import Verdict
from rackwright.quality.beside import FEWEST, BesidePeers, PacePair

ROW = "beside its peers"
"""Name of the row."""
NO_PEER = "no peer to compare with: no other host of this run and shape serves the release before"


@dataclass
class Watched:
    """Pairs of a canary and its peers, and how they were measured."""

    pairs: list[PacePair] = field(default_factory=list)
    source: str = ""
    """The way in which the pairs were taken, as text."""
    drafts: str = ""
    """The canary's accepted drafts, as text; empty where nothing says it."""
    why_few: str = ""
    """The reason for too few pairs; empty when there are enough."""


def enough(pairs: Sequence[PacePair]) -> bool:
    """Return True if one of the figures has an interval."""
    return BesidePeers(pairs, 0).is_judged


def peer_verdict(check: PeerCheck, watched: Watched) -> Verdict:
    """Return the verdict on what was seen."""
    found = BesidePeers(watched.pairs, check.slower_by)
    if not found.is_judged:
        number = len(watched.pairs)
        text = f"not measurable: {number} of at least {FEWEST} pairs"
        return Verdict(False, text + (f" ({watched.why_few})" if watched.why_few else ""), measured=False)
    text = "; ".join(filter(None, (found.sentence, watched.drafts, watched.source)))
    return Verdict(not found.slower, text, found.figures()[0])
