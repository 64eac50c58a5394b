"""Fill the folder: from the neighbour, from two places up where it fails or is slow, or from the hub."""

from __future__ import annotations

import ssl
import time
from collections.abc import Sequence

from rackwright.hostside.hand_on.choice import PAUSE, SourceChoice
from rackwright.hostside.hand_on.connections import Connections
from rackwright.hostside.hand_on.failures import HandOnError, NoPiecesError, WrongPiecesError, of_disk
from rackwright.hostside.hand_on.holding import Holding
from rackwright.hostside.hand_on.origin import HubFiles
from rackwright.hostside.hand_on.peer import PeerConnection
from rackwright.hostside.hand_on.pieces import PIECE, Keys
from rackwright.hostside.hand_on.rate_limit import RateLimit
from rackwright.hostside.hand_on.report import PullReport, say
from rackwright.hostside.hand_on.spec import HandOnSpec, SourceHost
from rackwright.hostside.hand_on.stream import PieceStream

TRIES = 4
LONGEST_WAIT = 900.0
"""Seconds without a byte while sources still answer, and the longest wait that the hub may ask for."""


class Puller:
    """Fills a folder. `done`: every file is whole."""

    def __init__(
        self,
        spec: HandOnSpec,
        keys: Keys,
        holdings: Sequence[Holding],
        origin: HubFiles | None,
        tls: ssl.SSLContext | None,
    ) -> None:
        self.spec, self.holdings, self.done = spec, holdings, False
        self.limit = RateLimit(spec.rate)
        self.origin = origin
        self.report = PullReport(sum(file.size for file in spec.files))
        self.choice = SourceChoice(spec.sources, time.monotonic)
        self.links = Connections(spec, keys, tls)
        self.stream = PieceStream(spec, self.choice, self.links, self.limit, self.report, self.held)

    def run(self) -> None:
        """Make every file whole. Raises HandOnError."""
        try:
            for holding in self.holdings:
                self._fill(holding)
            self.done = True
        except OSError as error:
            raise of_disk(error, str(self.spec.folder)) from None
        finally:
            self.links.close()

    def quiet(self) -> float:
        """Return the seconds since this host heard of one that can get more: that fetches from the hub, or has all."""
        return 0.0 if self.origin or self.done else self.links.silent()

    def held(self) -> int:
        """Return the bytes that are here, of all files."""
        return sum(holding.have for holding in self.holdings)

    # -- one file

    def _fill(self, holding: Holding) -> None:
        holding.resume(self.report.add)
        holding.careful = False
        self.report.done = self.held()
        for _ in range(TRIES):
            if holding.whole:
                return
            self.stream.vouching.clear()
            while holding.have < holding.file.size:
                if not self._round(holding):
                    self._pause(holding)
            givers = sorted(holding.givers)
            if not holding.close_whole_or_discard():
                self._blame(holding, givers)
        raise HandOnError(f"{holding.file.path}: wrong bytes, {TRIES} times; its sources: {', '.join(givers)}")

    def _blame(self, holding: Holding, givers: Sequence[str]) -> None:
        """Name the sources of a wrong file.

        A host that gave all of it as a verified file is not asked again; another one may have been deceived itself.
        """
        text = f"{holding.file.path} is not the published file and was thrown away; from: {', '.join(givers)}"
        say(text, "warning")
        self.report.done = self.held()
        self.choice.drop(givers if self.stream.vouching.issuperset(givers) else ())
        self.links.close()

    def _pause(self, holding: Holding) -> None:
        """Wait a little. Raises HandOnError when no source gives, or knows one that can get more."""
        empty = time.monotonic() - self.report.last
        if not self.choice.sources and not self.origin:
            raise HandOnError(f"{holding.file.path}: no source is left")
        patience = self.spec.after if self.origin else self.spec.stall
        if (self.links.is_given_up() and empty > patience) or empty > LONGEST_WAIT:
            raise HandOnError(f"{holding.file.path}: no source gives it ({self.choice.why(8)})")
        self.report.waiting(self.choice.why(2))
        time.sleep(PAUSE)

    # -- the hosts

    def _round(self, holding: Holding) -> bool:
        """Ask the sources in turn. Return True if one gave something."""
        for source in self.choice.candidates(begins=not self.held()):
            before = holding.have
            self._ask(source, holding)
            if holding.have > before:
                return True
        return self._from_origin(holding) if self._is_origins_turn() else False

    def _ask(self, source: SourceHost, holding: Holding) -> None:
        """Take what a source gives."""
        was_current = source == self.choice.current
        try:
            peer = self.links.to(source)
            if was_current or self._has_more(peer, holding):
                self.stream.take(peer, holding)
        except WrongPiecesError as error:
            say(f"{source.name}: {error}; it is not asked again", "warning")
            self.choice.drop([source.name])
            self.links.close()
        except NoPiecesError as error:
            if source == self.choice.current:
                say(f"{source.name}: {error}; another source is asked", "warning")
            self.choice.fail(source, error)
            self.links.close()

    def _has_more(self, peer: PeerConnection, holding: Holding) -> bool:
        """Return True if a host that is not the source yet is worth asking; the neighbour always is."""
        if self.choice.is_neighbour(peer.source) and self.choice.current is None:
            return True
        state = self.links.state(peer, holding, self.stream.message(holding))
        self.choice.reasons[peer.source.name] = "it has nothing more"
        # The host before a source that only waits has one piece more in every chain.
        ahead = holding.have + (PIECE if self.choice.passing and not state.whole else 0)
        return state.have > ahead and (state.whole or not holding.careful)

    # -- the hub

    def _is_origins_turn(self) -> bool:
        quiet = time.monotonic() - self.report.last
        return self.origin is not None and (not self.choice.sources or quiet > self.spec.after)

    def _from_origin(self, holding: Holding) -> bool:
        """Fetch from the hub. Return True if something arrived. Raises HandOnError where it fails again and again."""
        assert self.origin is not None
        before = holding.have
        for number in range(1, TRIES + 1):
            try:
                self.origin.fill(holding, self.limit, self.report)
                return True
            except NoPiecesError as error:
                if holding.have > before:
                    return True
                self.choice.reasons[self.origin.name] = str(error)
                wait = error.wait or number * number
                if number == TRIES or wait > LONGEST_WAIT:
                    break
                say(f"{self.origin.name}: {error}; try {number + 1} of {TRIES} in {wait:.0f} s", "warning")
                time.sleep(wait)
        if not self.choice.sources:
            raise HandOnError(f"{holding.file.path}: {self.origin.name}: {self.choice.reasons[self.origin.name]}")
        return False
