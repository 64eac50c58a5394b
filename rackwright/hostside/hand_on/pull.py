"""Fill the folder: from the neighbour, from two places up where it fails or is slow, or from the hub."""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Iterator, Sequence

from rackwright.hostside.hand_on import pieces
from rackwright.hostside.hand_on.failures import HandOnError, NoPiecesError, WrongPiecesError, of_disk
from rackwright.hostside.hand_on.holding import Holding
from rackwright.hostside.hand_on.origin import NAME, HubFiles
from rackwright.hostside.hand_on.peer import Ask, PeerConnection, PieceAnswer
from rackwright.hostside.hand_on.pieces import PIECE, Keys
from rackwright.hostside.hand_on.rate_limit import RateLimit
from rackwright.hostside.hand_on.report import PullReport, say
from rackwright.hostside.hand_on.spec import HandOnSpec, SourceHost
from rackwright.hostside.hand_on.watch import Sample, SourceWatch

TRIES = 4
NEAR, OTHERS = 4, 4
"""Sources that each round asks: always the first of the list, and in turn some of the rest."""
PAUSE = 0.5
PATIENCE = 3.0
"""Seconds that a source may have nothing new before others are looked at."""
SETTLE = 6.0
"""Seconds for which only the neighbour is asked at the start: all hosts begin within a few seconds."""
Response = http.client.HTTPResponse
LONGEST_WAIT = 900.0
"""Seconds without a byte while sources still answer."""


class Puller:
    """Fills a folder. `tried`: it left its neighbour for a faster source, or found none."""

    def __init__(
        self, spec: HandOnSpec, keys: Keys, holdings: Sequence[Holding], token: str | None, tls: ssl.SSLContext | None
    ) -> None:
        self.spec, self.keys, self.holdings, self.tls = spec, keys, holdings, tls
        self.limit = RateLimit(spec.rate)
        self.origin = HubFiles(spec.origin, token if spec.authorised else None, spec.stall) if spec.origin else None
        self.report = PullReport(sum(file.size for file in spec.files))
        self.start = self.heard = time.monotonic()
        self.sources = list(spec.sources)
        self.current: SourceHost | None = None
        self.peer: PeerConnection | None = None
        self.watch = SourceWatch(self.start)
        self.passing, self.tried, self.done, self.round = "", False, False, 0
        self.vouching: set[str] = set()
        """Hosts that gave bytes of the present file and said that they had all of it, verified."""
        self.interval = 0.0
        """Seconds between the last two answers with pieces."""
        self.rest: dict[SourceHost, tuple[float, float]] = {}
        """Sources that failed: until when they are left alone, and for how long the next time."""
        self.reasons: dict[str, str] = {}

    def run(self) -> None:
        """Make every file whole. Raises HandOnError."""
        try:
            for holding in self.holdings:
                self._fill(holding)
            self.done = True
        except OSError as error:
            raise of_disk(error, str(self.spec.folder)) from None
        finally:
            self._leave()

    def quiet(self) -> float:
        """Return the seconds since this host heard of one that can get more: that fetches from the hub, or has all."""
        return 0.0 if self.origin or self.done else time.monotonic() - self.heard

    def _heard(self, answer: PieceAnswer) -> None:
        """Note what a source knows; hosts that only wait for each other know less from second to second."""
        self.heard = max(self.heard, time.monotonic() - answer.quiet)

    @property
    def held(self) -> int:
        """Return the bytes that are here, of all files."""
        return sum(holding.have for holding in self.holdings)

    # -- one file

    def _fill(self, holding: Holding) -> None:
        holding.resume(self.report.add)
        holding.careful = False
        self.report.done = self.held
        for _ in range(TRIES):
            if holding.whole:
                return
            self.vouching.clear()
            self._receive(holding)
            givers = set(holding.givers)
            if not holding.close_whole_or_discard():
                self._blame(holding, givers)
        raise HandOnError(f"{holding.file.path}: wrong bytes, {TRIES} times; its sources: {', '.join(sorted(givers))}")

    def _blame(self, holding: Holding, givers: set[str]) -> None:
        """Name the sources of a wrong file.

        A host that gave all of it as a verified file is not asked again; another one may have been deceived itself.
        """
        say(
            f"{holding.file.path} is not the published file and was thrown away; from: {', '.join(sorted(givers))}",
            "warning",
        )
        self.report.done = self.held
        if givers <= self.vouching:
            self.sources = [source for source in self.sources if source.name not in givers]
        self._leave()

    def _receive(self, holding: Holding) -> None:
        """Receive the rest of a file, from whichever source gives."""
        while holding.have < holding.file.size:
            if not self._round(holding):
                self._pause(holding)

    def _round(self, holding: Holding) -> bool:
        """Ask the sources in turn. Return True if one gave something."""
        for source in self._candidates():
            before = holding.have
            try:
                self._from(source, holding)
            except WrongPiecesError as error:
                say(f"{source.name}: {error}; it is not asked again", "warning")
                self.sources.remove(source)
                self._leave()
            except NoPiecesError as error:
                self._failed(source, error)
            if holding.have > before:
                return True
        return self._from_origin(holding) if self._is_origins_turn() else False

    def _candidates(self) -> Iterator[SourceHost]:
        """List the current source, then the nearest, then some of the others, without those that failed just now."""
        now, self.round = time.monotonic(), self.round + 1
        near, far = self.sources[:NEAR], self.sources[NEAR:]
        if now < self.start + SETTLE and not self.held:
            near, far = near[:1], []
        begin = self.round * OTHERS % len(far) if far else 0
        listed = [*([self.current] if self.current else []), *near, *(far[begin:] + far[:begin])[:OTHERS]]
        for source in dict.fromkeys(listed):
            if source in self.sources and self.rest.get(source, (0, 0))[0] <= now:
                yield source

    def _failed(self, source: SourceHost, error: NoPiecesError) -> None:
        _, pause = self.rest.get(source, (0.0, PAUSE))
        self.rest[source] = (time.monotonic() + max(pause, error.wait), min(2 * pause, 30.0))
        if self.current == source:
            say(f"{source.name}: {error}; another source is asked", "warning")
        self.reasons[source.name] = str(error)
        self._leave()

    def _pause(self, holding: Holding) -> None:
        """Wait a little. Raises HandOnError when no source gives, or knows one that can get more."""
        now = time.monotonic()
        silent, empty = now - self.heard, now - self.report.last
        if not self.sources and not self.origin:
            raise HandOnError(f"{holding.file.path}: no source is left")
        if (silent > self._patience() and empty > self.spec.stall) or empty > LONGEST_WAIT:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in sorted(self.reasons.items())[:8])
            raise HandOnError(f"{holding.file.path}: no source gives it ({reasons})")
        self.report.waiting("; ".join(f"{name}: {reason}" for name, reason in list(self.reasons.items())[-2:]))
        time.sleep(PAUSE)

    def _patience(self) -> float:
        """Return the seconds without an answer after which no source is left; more while none of them has begun."""
        return self.spec.stall if self.heard > self.start else self.spec.start

    # -- a host

    def _from(self, source: SourceHost, holding: Holding) -> None:
        """Take what a source gives; return when it gives nothing more. Raises NoPiecesError."""
        peer = self._peer(source)
        if source != self.current and not self._has_more(peer, holding):
            return
        self._stream(peer, holding)

    def _has_more(self, peer: PeerConnection, holding: Holding) -> bool:
        """Return True if a host that is not the source yet is worth asking; the neighbour always is."""
        if peer.source == self.sources[0] and self.current is None:
            return True
        state = self._state(peer, holding)
        self.reasons[peer.source.name] = "it has nothing more"
        # The host before a source that only waits has one piece more in every chain.
        ahead = holding.have + (PIECE if self.passing and not state.whole else 0)
        return state.have > ahead and (state.whole or not holding.careful)

    def _stream(self, peer: PeerConnection, holding: Holding) -> None:
        """Receive answer after answer. While the last piece of one is compared, the next is on its way."""
        peer.ask(holding, holding.have, self._message(holding))
        waited, last = 0.0, time.monotonic()
        while True:
            begun = time.monotonic()
            answer, response = peer.answer()
            self._heard(answer)
            if answer.why in ("busy", "passed"):
                self.reasons[peer.source.name] = "it serves another host"
                return self._leave(keep=True)
            self._is_current(peer)
            if not answer.why:
                waited, self.interval, last = 0.0, begun - last, begun
                peer.check_list(holding, holding.have, answer)
                if self._take(peer, holding, answer, response):
                    return None
            else:
                waited += time.monotonic() - begun
                self.reasons[peer.source.name] = "it has nothing more yet"
                self.report.waiting(f"{peer.source.name} has nothing more yet")
                peer.ask(holding, holding.have, self._message(holding))
            if answer.why or answer.have <= holding.have + PIECE:
                self.watch.at_edge(time.monotonic() - begun)
            if waited > max(PATIENCE, 3 * self.interval):
                return self._pass(peer, "has nothing more")
            if self._is_slow(peer, holding, answer):
                return self._pass(peer, "has less than the host before it")

    def _take(
        self, peer: PeerConnection, holding: Holding, answer: PieceAnswer, response: http.client.HTTPResponse
    ) -> bool:
        """Take the pieces of an answer, and ask for the next one. Return True at the end of the file."""
        for number, digest in enumerate(answer.sums):
            start = answer.start + number * PIECE
            data = peer.take(response, min(PIECE, answer.end - start), self.limit)
            if start + len(data) == answer.end < holding.file.size:
                peer.ask(holding, answer.end, self._message(holding))
            if pieces.sha256(data) != digest:
                raise WrongPiecesError(f"a piece of {holding.file.path} is not what its list says")
            holding.add(data, digest, peer.source.name)
            (self.vouching.add if answer.whole else self.vouching.discard)(peer.source.name)
            self.report.add(len(data), peer.source.name)
        return answer.end == holding.file.size

    def _message(self, holding: Holding) -> Ask:
        return Ask(self.held, self.passing, holding.careful)

    # -- which host

    def _peer(self, source: SourceHost) -> PeerConnection:
        """Return a connection; the current one is kept from file to file."""
        if self.peer and self.peer.source == source:
            return self.peer
        self._leave()
        address = self.spec.address
        self.peer = PeerConnection(source, self.keys, address, self.spec.stall, self.tls)
        self.peer.connect()
        return self.peer

    def _is_current(self, peer: PeerConnection) -> None:
        if self.current != peer.source:
            self.passing = ""
            self.current, self.watch = peer.source, SourceWatch(time.monotonic())
        self.rest.pop(peer.source, None)

    def _leave(self, keep: bool = False) -> None:
        """Choose a source again. keep: the connection is still good."""
        self.current = None
        if self.peer and not keep:
            self.peer.close()
            self.peer = None

    def _pass(self, peer: PeerConnection, reason: str) -> None:
        """Leave a source for one that has more; it is asked again when none has."""
        say(f"{peer.source.name} {reason}: looking for another source")
        self.passing = peer.source.address
        self.rest[peer.source] = (time.monotonic() + PAUSE, PAUSE)
        self._leave()

    def _is_slow(self, peer: PeerConnection, holding: Holding, answer: PieceAnswer) -> bool:
        """Return True if the host before the source gets its bytes faster than the source."""
        now = time.monotonic()
        before = self._before(peer.source)
        if before is None or not self.watch.is_due(now):
            return False
        if self.watch.edge < (now - self.watch.since) / 2:
            self.watch.skip(now)
            return False
        state = self._glance(before, holding)
        if state is None:
            return False
        sample = Sample(now, answer.total, state.total, state.total >= self.report.total)
        slow = self.watch.add(sample, self.tried or answer.tried)
        self.tried = self.tried or slow
        return slow

    def _before(self, source: SourceHost) -> SourceHost | None:
        number = self.sources.index(source) + 1 if source in self.sources else len(self.sources)
        return self.sources[number] if number < len(self.sources) else None

    def _glance(self, source: SourceHost, holding: Holding) -> PieceAnswer | None:
        """Return what another host has; None where it does not answer."""
        address = self.spec.address
        peer = PeerConnection(source, self.keys, address, min(2.0, self.spec.stall), self.tls)
        try:
            peer.connect()
            return self._state(peer, holding)
        except NoPiecesError:
            return None
        finally:
            peer.close()

    def _state(self, peer: PeerConnection, holding: Holding) -> PieceAnswer:
        peer.ask(holding, holding.have, self._message(holding), "HEAD")
        answer, _ = peer.answer()
        self._heard(answer)
        return answer

    # -- the hub

    def _is_origins_turn(self) -> bool:
        quiet = time.monotonic() - self.report.last
        return self.origin is not None and (not self.sources or quiet > self.spec.stall)

    def _from_origin(self, holding: Holding) -> bool:
        """Fetch from the hub. Return True if something arrived. Raises HandOnError where it fails again and again."""
        assert self.origin is not None
        for number in range(1, TRIES + 1):
            before = holding.have
            try:
                self.origin.fill(holding, self.limit, self.report)
                return True
            except NoPiecesError as error:
                self.reasons[NAME] = str(error)
                if holding.have > before:
                    return True
                wait = error.wait or number * number
                if number == TRIES or wait > LONGEST_WAIT:
                    break
                say(f"{NAME}: {error}; try {number + 1} of {TRIES} in {wait:.0f} s", "warning")
                time.sleep(wait)
        if not self.sources:
            raise HandOnError(f"{holding.file.path}: {NAME}: {self.reasons[NAME]}")
        return False
