"""One connection to another host: what is asked, the answer, and its pieces, held against their list."""

from __future__ import annotations

import http.client
import ssl
from dataclasses import dataclass
from urllib.parse import quote

from rackwright.hostside.hand_on import pieces
from rackwright.hostside.hand_on.failures import NoPiecesError, WrongPiecesError
from rackwright.hostside.hand_on.holding import Holding
from rackwright.hostside.hand_on.pieces import PIECE, Keys
from rackwright.hostside.hand_on.rate_limit import RateLimit
from rackwright.hostside.hand_on.receive import BROKEN, receive, words
from rackwright.hostside.hand_on.spec import SourceHost

CONNECT = 5.0
SILENT = 10.0
"""Seconds without a byte after which a host counts as gone: it answers every two seconds, if only "waiting"."""
MOST = 1 << 16
"""Bytes of an answer that has no pieces."""


@dataclass(frozen=True)
class PieceAnswer:
    """The answer of a host.

    why: it gives nothing now: "waiting", "busy", "passed". have, total: its bytes of the file, and of all files.
    tried: it looked for a faster source than its neighbour. waits: it has all that its source has. quiet: seconds since
    it heard of a host that can get more.
    """

    why: str
    have: int
    total: int
    whole: bool
    tried: bool
    waits: bool
    quiet: float
    start: int
    end: int
    sums: tuple[str, ...]
    signature: str


@dataclass(frozen=True)
class Ask:
    """The host's words with a request. held: bytes it has of all files; passing: a host that it leaves out."""

    held: int = 0
    passing: str = ""
    whole: bool = False


class PeerConnection:
    """A connection to a source. Raises NoPiecesError where it fails, WrongPiecesError where it is contradicted."""

    def __init__(
        self, source: SourceHost, keys: Keys, address: str | None, stall: float, tls: ssl.SSLContext | None
    ) -> None:
        self.source, self.keys, self.stall = source, keys, stall
        here = (address, 0) if address else None
        timeout = min(CONNECT, stall)
        if tls:
            self.http: http.client.HTTPConnection = http.client.HTTPSConnection(
                source.address, source.port, timeout=timeout, source_address=here, context=tls
            )
        else:
            self.http = http.client.HTTPConnection(source.address, source.port, timeout=timeout, source_address=here)
        self.nonce, self.number = "", 0

    def close(self) -> None:
        """End the connection, whatever is still asked."""
        self.http.close()

    def connect(self) -> None:
        """Connect, and get the nonce by which requests are signed."""
        try:
            self.http.connect()
            self.http.sock.settimeout(min(SILENT, self.stall))
            self.http.request("GET", "/")
            answer = self.http.getresponse()
            answer.read(MOST)
        except BROKEN as error:
            raise NoPiecesError(words(error)) from None
        self.nonce = answer.headers.get("X-Nonce", "")
        if answer.status != 401 or not self.nonce:
            raise NoPiecesError(f"it answers {answer.status} where it should give a nonce")

    def ask(self, holding: Holding, offset: int, message: Ask, method: str = "GET") -> None:
        """Ask for the pieces of a file from `offset` on; HEAD: only what it has."""
        extra = {"X-Held": str(message.held), "X-Passing": message.passing, "X-Whole": str(int(message.whole))}
        self._send(method, f"/files/{quote(holding.file.path)}", f"bytes={offset}-", extra)

    def tell_done(self) -> None:
        """Tell that this host needs no more."""
        self._send("POST", "/done", "", {})
        with self._answer() as answer:
            answer.read(MOST)

    def answer(self) -> tuple[PieceAnswer, http.client.HTTPResponse]:
        """Return the answer to what was asked; its body is not read yet."""
        response = self._answer()
        if response.status not in (200, 206, 503):
            response.close()
            raise NoPiecesError(f"it answers {response.status} {response.reason}")
        if response.status != 206:
            response.read(MOST)
        return _read(response), response

    def take(self, response: http.client.HTTPResponse, size: int, limit: RateLimit) -> bytearray:
        """Read a piece."""
        return receive(response, size, limit, self.stall)

    def check_list(self, holding: Holding, offset: int, answer: PieceAnswer) -> None:
        """Compare an answer's list with what was asked, and with its signature. Raises WrongPiecesError."""
        fits = answer.start == offset and offset < answer.end <= holding.file.size
        ends = answer.end % PIECE == 0 or answer.end == holding.file.size
        if not (fits and ends and len(answer.sums) == pieces.count(answer.end - offset)):
            raise WrongPiecesError(f"its list of pieces does not fit {holding.file.path}")
        if not pieces.same(self.keys.sign_list(holding.file.digest, offset, answer.sums), answer.signature):
            raise WrongPiecesError(f"its list of pieces of {holding.file.path} is not signed by this run")

    def _send(self, method: str, path: str, wanted: str, extra: dict[str, str]) -> None:
        self.number += 1
        signed = [method, path, wanted, *extra.values()]
        signature = self.keys.sign_request(self.nonce, self.number, signed)
        headers = {**({"Range": wanted} if wanted else {}), **extra, "Authorization": f"Run {signature}"}
        try:
            self.http.request(method, path, headers=headers)
        except BROKEN as error:
            raise NoPiecesError(words(error)) from None

    def _answer(self) -> http.client.HTTPResponse:
        try:
            return self.http.getresponse()
        except BROKEN as error:
            raise NoPiecesError(words(error)) from None


def _read(response: http.client.HTTPResponse) -> PieceAnswer:
    headers = response.headers
    try:
        pieces_of = headers.get("Content-Range", "bytes 0--1/0").split(" ")[1].split("/")[0]
        start, _, last = pieces_of.partition("-")
        return PieceAnswer(
            why=headers.get("X-Why", ""),
            have=int(headers.get("X-Have", "0")),
            total=int(headers.get("X-Total", "0")),
            whole=headers.get("X-Whole") == "1",
            quiet=float(headers.get("X-Quiet", "0")),
            tried=headers.get("X-Tried") == "1",
            waits=headers.get("X-Waits") == "1",
            start=int(start),
            end=int(last) + 1,
            sums=tuple(filter(None, headers.get("X-Pieces", "").split(","))),
            signature=headers.get("X-List", ""),
        )
    except (ValueError, IndexError):
        raise WrongPiecesError("its answer cannot be read") from None
