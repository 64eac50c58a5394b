"""One file from one host, answer after answer, until the file ends, the host has nothing more, or another is faster."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable

from rackwright.hostside.hand_on import pieces
from rackwright.hostside.hand_on.choice import SourceChoice
from rackwright.hostside.hand_on.connections import Connections
from rackwright.hostside.hand_on.failures import WrongPiecesError
from rackwright.hostside.hand_on.holding import Holding
from rackwright.hostside.hand_on.peer import SILENT, Ask, PeerConnection, PieceAnswer
from rackwright.hostside.hand_on.pieces import PIECE
from rackwright.hostside.hand_on.rate_limit import RateLimit
from rackwright.hostside.hand_on.report import PullReport, say
from rackwright.hostside.hand_on.spec import HandOnSpec, SourceHost
from rackwright.hostside.hand_on.watch import EDGE, Sample, SourceWatch

MARGIN = 2.0
"""Seconds longer than a source waits for the one before it: it may find that one gone, and ask another."""
BUSY = ("busy", "passed")


class PieceStream:
    """Takes pieces. `vouching`: hosts that gave bytes of the present file and said that all of it is verified there.

    tried: whether this host left its neighbour for a faster source. waits: whether it has all that its source has, so
    that a host behind it has no reason to pass it.
    """

    def __init__(
        self,
        spec: HandOnSpec,
        choice: SourceChoice,
        links: Connections,
        limit: RateLimit,
        report: PullReport,
        held: Callable[[], int],
    ) -> None:
        self.choice, self.links, self.limit, self.report, self.held = choice, links, limit, report, held
        self.start, self.patience = spec.start, min(SILENT, spec.stall) + MARGIN
        self.watch = SourceWatch(time.monotonic())
        self.vouching: set[str] = set()
        self.tried, self.waits = False, True
        self.waited = self.interval = 0.0
        """Seconds without a new piece, and between the last two answers with pieces."""

    def take(self, peer: PeerConnection, holding: Holding) -> None:
        """Take what a source gives, and return when it gives nothing more.

        Raises NoPiecesError, and WrongPiecesError where it is contradicted.
        """
        self.waited, last = 0.0, time.monotonic()
        peer.ask(holding, holding.have, self.message(holding))
        while holding.have < holding.file.size:
            begun = time.monotonic()
            answer, response = peer.answer()
            self.links.note(answer)
            if answer.why in BUSY:
                self.waits = False
                self.choice.give_way(peer.source, passed=answer.why == "passed")
                return
            if self.choice.take(peer.source):
                self.watch = SourceWatch(begun)
            if answer.why:
                self._wait(peer, holding, begun)
            else:
                self.waited, self.interval, last = 0.0, begun - last, begun
                self._pieces(peer, holding, answer, response)
            if self._is_left(peer, holding):
                return

    def message(self, holding: Holding) -> Ask:
        """Return what is said with a request."""
        return Ask(self.held(), self.choice.passing, holding.careful)

    def _wait(self, peer: PeerConnection, holding: Holding, begun: float) -> None:
        self.waited += time.monotonic() - begun
        self.choice.reasons[peer.source.name] = "it has nothing more yet"
        self.report.waiting(f"{peer.source.name} has nothing more yet")
        peer.ask(holding, holding.have, self.message(holding))

    def _pieces(
        self, peer: PeerConnection, holding: Holding, answer: PieceAnswer, response: http.client.HTTPResponse
    ) -> None:
        """Take the pieces of an answer. While the last one is compared, the next answer is on its way."""
        peer.check_list(holding, holding.have, answer)
        (self.vouching.add if answer.whole else self.vouching.discard)(peer.source.name)
        for number, digest in enumerate(answer.sums):
            start = answer.start + number * PIECE
            data = peer.take(response, min(PIECE, answer.end - start), self.limit)
            if start + len(data) == answer.end < holding.file.size:
                peer.ask(holding, answer.end, self.message(holding))
            if pieces.sha256(data) != digest:
                raise WrongPiecesError(f"a piece of {holding.file.path} is not what its list says")
            holding.add(data, digest, peer.source.name)
            self.report.add(len(data), peer.source.name)

    # -- is another source better?

    def _is_left(self, peer: PeerConnection, holding: Holding) -> bool:
        """Leave a source that has nothing new, or less than the host before it. Return True if it was left."""
        if self.waited > self._patience():
            self._leave(peer, "has nothing more", passing=False)
        elif self._is_slow(peer.source, holding):
            self.tried = True
            self._leave(peer, "has less than the host before it", passing=True)
        else:
            return False
        return True

    def _patience(self) -> float:
        """Return the seconds without a piece after which others are asked. A long chain fills piece by piece."""
        return max(self.patience, 3 * self.interval) if self.held() else self.start

    def _leave(self, peer: PeerConnection, reason: str, passing: bool) -> None:
        say(f"{peer.source.name} {reason}: looking for another source")
        self.choice.leave_out(peer.source, passing)
        self.links.close()

    def _is_slow(self, source: SourceHost, holding: Holding) -> bool:
        """Return True if the host before the source gets its bytes faster than the source."""
        now = time.monotonic()
        if self.choice.is_late or holding.have == holding.file.size or not self.watch.is_due(now):
            return False
        state = self.links.ask_state(source, holding, self.message(holding))
        self.waits = state is not None and state.have <= holding.have + EDGE
        if state is None or not self.waits or state.waits:
            self.watch.skip(now)
            return False
        sample = self._sample(source, holding, state, now)
        return sample is not None and self.watch.add(sample, self.tried or state.tried)

    def _sample(self, source: SourceHost, holding: Holding, state: PieceAnswer, now: float) -> Sample | None:
        """Look at the nearest host before the source that has more: one that was passed has less."""
        for host in self.choice.before(source):
            before = self.links.ask_state(host, holding, self.message(holding))
            if before is not None and before.total > state.total:
                return Sample(now, state.total, before.total, before.total >= self.report.total, host.name)
        self.watch.skip(now)
        return None
