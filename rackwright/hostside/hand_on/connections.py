"""Connections to sources: the current one is kept from file to file, and each answer says what others know."""

from __future__ import annotations

import ssl
import time

from rackwright.hostside.hand_on.failures import NoPiecesError
from rackwright.hostside.hand_on.holding import Holding
from rackwright.hostside.hand_on.peer import Ask, PeerConnection, PieceAnswer
from rackwright.hostside.hand_on.pieces import Keys
from rackwright.hostside.hand_on.spec import HandOnSpec, SourceHost

BRIEF = 2.0
"""Seconds for the answer of a host that is only asked what it has."""


class Connections:
    """One connection for pieces, and short ones to ask what a host has."""

    def __init__(self, spec: HandOnSpec, keys: Keys, tls: ssl.SSLContext | None) -> None:
        self.spec, self.keys, self.tls = spec, keys, tls
        self.start = self.heard = time.monotonic()
        self.peer: PeerConnection | None = None

    def to(self, source: SourceHost) -> PeerConnection:
        """Return the connection for pieces of a source. Raises NoPiecesError."""
        if self.peer and self.peer.source == source:
            return self.peer
        self.close()
        self.peer = self._new(source, self.spec.stall)
        self.peer.connect()
        return self.peer

    def close(self) -> None:
        """End the connection for pieces, whatever is still asked."""
        if self.peer:
            self.peer.close()
        self.peer = None

    def ask_state(self, source: SourceHost, holding: Holding, message: Ask) -> PieceAnswer | None:
        """Return what another host has; None where it does not answer."""
        peer = self._new(source, min(BRIEF, self.spec.stall))
        try:
            peer.connect()
            return self.state(peer, holding, message)
        except NoPiecesError:
            return None
        finally:
            peer.close()

    def state(self, peer: PeerConnection, holding: Holding, message: Ask) -> PieceAnswer:
        """Return what a host has. Raises NoPiecesError."""
        peer.ask(holding, holding.have, message, "HEAD")
        return self.note(peer.answer()[0])

    def note(self, answer: PieceAnswer) -> PieceAnswer:
        """Note what a host knows; hosts that only wait for each other know less from second to second."""
        self.heard = max(self.heard, time.monotonic() - answer.quiet)
        return answer

    def silent(self) -> float:
        """Return the seconds since a host was heard of that can get more bytes."""
        return time.monotonic() - self.heard

    def is_given_up(self) -> bool:
        """Return True if no source is left to hope for; longer while none of them has begun."""
        return self.silent() > (self.spec.stall if self.heard > self.start else self.spec.start)

    def _new(self, source: SourceHost, stall: float) -> PeerConnection:
        return PeerConnection(source, self.keys, self.spec.address, stall, self.tls)
