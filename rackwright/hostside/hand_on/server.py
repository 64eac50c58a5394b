"""Hand verified pieces on, to the hosts of the run only, one at a time."""

from __future__ import annotations

import os
import secrets
import socket
import ssl
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from urllib.parse import quote

from rackwright.hostside.hand_on import pieces
from rackwright.hostside.hand_on.failures import HandOnError
from rackwright.hostside.hand_on.holding import Holding, PieceRun
from rackwright.hostside.hand_on.pieces import PIECE, Keys
from rackwright.hostside.hand_on.rate_limit import RateLimit
from rackwright.hostside.hand_on.request import WITHIN, PeerRequest, Reader, offset
from rackwright.hostside.hand_on.slot import ServingSlot
from rackwright.hostside.hand_on.spec import Listen
from rackwright.hostside.quiet_disk import forget

AT_ONCE = 4
"""Pieces in one answer: after it, another host may have the turn."""
GUESTS, OF_ONE = 64, 4
"""Connections at a time that are not signed yet, of all hosts and of one; and of one that are."""
WAIT = 2.0
"""Seconds that a request waits for a piece that is not here yet."""
NAMED = 3
"""Addresses that a line has at most."""
Headers = dict[str, str]


class PieceServer:
    """The listener.

    tried: whether this host looked for a faster source than the one before it. waits: whether it has all that its
    source has. quiet: seconds since it heard of a host that can get more bytes.
    """

    def __init__(
        self,
        listen: Listen,
        holdings: Sequence[Holding],
        keys: Keys,
        limit: RateLimit,
        stall: float,
        tls: ssl.SSLContext | None,
    ) -> None:
        self.listen, self.keys, self.limit, self.stall, self.tls = listen, keys, limit, stall, tls
        self.files = {f"/files/{quote(holding.file.path)}": holding for holding in holdings}
        self.slot = ServingSlot(listen.allow, time.monotonic)
        self.lock = threading.Lock()
        self.guests: Counter[str] = Counter()
        self.members: defaultdict[str, list[socket.socket]] = defaultdict(list)
        self.came: set[str] = set()
        self.done: set[str] = set()
        self.asked = time.monotonic()
        self.tried: Callable[[], bool] = bool
        self.waits: Callable[[], bool] = bool
        self.quiet: Callable[[], float] = float

    def start(self) -> None:
        """Listen. Raises HandOnError where the address or the port cannot be had."""
        family = socket.AF_INET6 if ":" in self.listen.address else socket.AF_INET
        try:
            self.socket = socket.create_server((self.listen.address, self.listen.port), family=family, backlog=128)
        except OSError as error:
            where = f"{self.listen.address} port {self.listen.port}"
            raise HandOnError(f"cannot listen on {where}: {error.strerror or error}") from None
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Listen no more: a thread that waits for a connection would keep the port."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def all_done(self) -> bool:
        """Return True when every host that may ask has said that it needs no more."""
        return self.done >= set(self.listen.allow)

    def all_came(self) -> bool:
        """Return True when every host that may ask has begun."""
        return self.came >= set(self.listen.allow)

    def waits_for(self, at_most: float) -> str:
        """Return a line on the hosts that have not said that they need no more. at_most: seconds that they have."""
        begun = [one for one in self.listen.allow if one not in self.done and one in self.came]
        new = [one for one in self.listen.allow if one not in self.done and one not in self.came]
        rows = [f"{few_of(begun)} to ask for more"] * bool(begun) + [f"{few_of(new)} to begin"] * bool(new)
        return f"handing on: waiting for {' and '.join(rows)}, {at_most:.0f} s at most"

    def idle(self) -> float:
        """Return the seconds since a host of the run asked for something."""
        return time.monotonic() - self.asked

    # -- connections

    def _accept(self) -> None:
        while True:
            try:
                connection, (address, *_) = self.socket.accept()
            except OSError:
                return
            if not self._enter(address):
                connection.close()
                continue
            threading.Thread(target=self._serve, args=(connection, address), daemon=True).start()

    def _enter(self, address: str) -> bool:
        """Count a connection that is not signed yet; others, and one too many, are closed before a byte is read."""
        with self.lock:
            full = self.guests[address] >= OF_ONE or sum(self.guests.values()) >= GUESTS
            if address not in self.listen.allow or full:
                return False
            self.guests[address] += 1
            return True

    def admit(self, address: str, link: socket.socket) -> None:
        """Count a connection that proved the run's token. Of too many of a host, the oldest is what a break left."""
        with self.lock:
            self.guests[address] -= 1
            self.members[address].append(link)
            if len(self.members[address]) > OF_ONE:
                with suppress(OSError):
                    self.members[address][0].shutdown(socket.SHUT_RDWR)

    def _leave(self, address: str, link: socket.socket | None) -> None:
        with self.lock:
            if link not in self.members[address]:
                self.guests[address] -= 1
                return
            self.members[address].remove(link)
            if not self.members[address]:
                self.slot.leave(address)

    def _serve(self, connection: socket.socket, address: str) -> None:
        link = None
        try:
            # Whatever else is sent ends the connection.
            with suppress(OSError, ValueError):
                link = self._wrapped(connection)
                Conversation(self, link, address).run()
        finally:
            self._leave(address, link)
            (link or connection).close()

    def _wrapped(self, connection: socket.socket) -> socket.socket:
        connection.settimeout(WITHIN)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.tls.wrap_socket(connection, server_side=True) if self.tls else connection


def few_of(addresses: Sequence[str]) -> str:
    """Return addresses as text for people."""
    more = len(addresses) - NAMED
    return ", ".join(addresses[:NAMED]) + (f" and {more} more" if more > 0 else "")


class Conversation:
    """One connection: its requests, each signed over the connection's nonce, and their answers."""

    def __init__(self, server: PieceServer, link: socket.socket, address: str) -> None:
        self.server, self.link, self.address = server, link, address
        self.nonce, self.number = secrets.token_hex(16), 0

    def run(self) -> None:
        """Give a nonce; then answer what is signed, until the other side ends the connection or errs."""
        reader = Reader(self.link)
        if reader.next(WITHIN) is None:
            return
        self._answer("401 Unauthorized", {"X-Nonce": self.nonce})
        idle = WITHIN
        while (request := reader.next(idle)) is not None:
            if not self._is_signed(request):
                self._answer("401 Unauthorized", {})
                return
            self.server.came.add(self.address)
            if self.number == 1:
                self.server.admit(self.address, self.link)
            idle = 2 * self.server.stall
            self.link.settimeout(self.server.stall)
            self.server.asked = time.monotonic()
            self._dispatch(request)

    def _is_signed(self, request: PeerRequest) -> bool:
        self.number += 1
        right = self.server.keys.sign_request(self.nonce, self.number, request.words())
        return pieces.same(f"Run {right}", request.headers.get("authorization", ""))

    def _dispatch(self, request: PeerRequest) -> None:
        holding = self.server.files.get(request.target)
        if (request.method, request.target) == ("POST", "/done"):
            self.server.done.add(self.address)
            self._answer("204 No Content", {})
        elif holding is None or holding.absent or request.method == "POST":
            self._answer("404 Not Found", {})
        elif (start := offset(request.headers.get("range", ""), holding.file.size, PIECE)) is None:
            self._answer("416 Range Not Satisfiable", {})
        elif request.method == "HEAD":
            self._answer("200 OK", self._state(holding))
        else:
            self._give(holding, start, request.headers)

    def _give(self, holding: Holding, start: int, headers: Headers) -> None:
        """Answer with pieces, or with the reason why not."""
        held, passing = int(headers.get("x-held", "0")), headers.get("x-passing", "")
        whole = headers.get("x-whole") == "1"
        with self.server.lock:
            why = self.server.slot.ask(self.address, held, passing if passing in self.server.listen.allow else "")
        if why or not holding.wait_beyond(start, whole, WAIT):
            self._answer(
                "503 Service Unavailable", {**self._state(holding), "Retry-After": "1", "X-Why": why or "waiting"}
            )
            return
        part = holding.pieces(start, AT_ONCE)
        if part is None:
            raise ValueError("thrown away at this moment")
        with os.fdopen(part.handle, "rb") as file:
            self._send(holding, part, file)

    def _send(self, holding: Holding, part: PieceRun, file: object) -> None:
        headers = {
            **self._state(holding),
            "Content-Range": f"bytes {part.start}-{part.end - 1}/{holding.file.size}",
            "X-Pieces": ",".join(part.sums),
            "X-List": self.server.keys.sign_list(holding.file.digest, part.start, part.sums),
        }
        self._answer("206 Partial Content", headers, part.end - part.start)
        here = part.start
        while here < part.end:
            size = min(self.server.limit.block, part.end - here)
            self.server.limit.spend(size)
            if self.link.sendfile(file, here, size) != size:  # type: ignore[arg-type]
                raise ValueError("the file is shorter than it was")
            here += size
            with self.server.lock:
                self.server.slot.still(self.address)
        forget(part.handle, part.start, part.end - part.start)

    def _state(self, holding: Holding) -> Headers:
        flags = {"X-Whole": holding.whole, "X-Tried": self.server.tried(), "X-Waits": self.server.waits()}
        total = sum(one.have for one in self.server.files.values())
        return {
            "X-Have": str(holding.have),
            "X-Total": str(total),
            "X-Quiet": f"{self.server.quiet():.1f}",
            **{name: str(int(flag)) for name, flag in flags.items()},
        }

    def _answer(self, status: str, headers: Headers, size: int = 0) -> None:
        lines = [
            f"HTTP/1.1 {status}",
            *(f"{name}: {value}" for name, value in headers.items()),
            f"Content-Length: {size}",
        ]
        self.link.sendall("\r\n".join([*lines, "", ""]).encode())
