"""The lab's one web server: `python -m rackwright_lab.servers.web --bind A:443 --cert F --key F --state DIR`.

It answers, by the name that is asked for, as huggingface.co (the hub's HTTP interface), as
cas-bridge.xethub.hf.co (where the hub sends large files), as mirror.lab.example (a site's mirror of all of them), and
for any other name from STATE/static/NAME/, as for openaipublic.blob.core.windows.net (the real encodings). Faults are
read from STATE/faults.json at each request, and every request is written to STATE/requests.jsonl (rackwright_lab.faults
is the interface to both).
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from rackwright_lab.faults import REQUESTS_FILE, Fault, read_faults
from rackwright_lab.standins.answer import Answer, Request, error_answer
from rackwright_lab.standins.encodings import ENCODINGS_HOST, ensure_encodings
from rackwright_lab.standins.hub import Hub
from rackwright_lab.standins.static import static_answer

HUB_HOST = "huggingface.co"
CDN_HOST = "cas-bridge.xethub.hf.co"
MIRROR_HOST = "mirror.lab.example"
"""A site's own mirror: /hub speaks the hub's interface, /cdn sends its large files, MIRRORED are trees of files.

Any other folder is of its own static tree.
"""
MIRRORED = {
    "encodings": f"{ENCODINGS_HOST}/encodings",
    "libnvidia-container": "nvidia.github.io/libnvidia-container",
    "docker": "download.docker.com",
    "debian": "deb.debian.org/debian",
    "ubuntu": "archive.ubuntu.com/ubuntu",
}
"""Folders of the mirror, and what of the static trees they show."""
WEB_HOSTS = (
    *(HUB_HOST, CDN_HOST, ENCODINGS_HOST, MIRROR_HOST),
    *("nvidia.github.io", "developer.download.nvidia.com", "download.docker.com"),
)
"""Names that lead to this server inside the lab: for the hosts' /etc/hosts and the certificate."""
_PIECE = 64 * 1024
_IDLE_SECONDS = 60
STALL_SECONDS = 300
"""How long a stalled answer keeps its connection open."""
_MESSAGES = {
    "401": "Invalid username or password.",
    "403": "Access to this resource is restricted.",
    "404": "Entry not found",
    "429": "We had to rate limit your IP.",
    "500": "Internal Error",
    "502": "Bad Gateway",
    "503": "Service Unavailable",
    "504": "Gateway Timeout",
}
_CODES = {"403": "GatedRepo", "404": "EntryNotFound"}


class Site:
    """Everything that the server answers from: one state folder, and the names of the hub and its CDN."""

    def __init__(self, state: Path, hub: str = HUB_HOST, cdn: str = CDN_HOST, cdn_url: str = "") -> None:
        self.state = state
        self._hub = Hub(state, cdn_url or f"https://{cdn}")
        self._mirror = Hub(state, f"https://{MIRROR_HOST}")
        self._names = {hub: self._hub.answer, cdn: self._hub.cdn_answer}
        self._lock = threading.Lock()
        self._used: Counter[str] = Counter()

    def answer(self, request: Request) -> Answer:
        """Answer one request, without faults."""
        if request.host in self._names:
            return self._names[request.host](request)
        if request.host == MIRROR_HOST:
            return self._mirrored(request)
        return static_answer(self.state / "static", request)

    def _mirrored(self, request: Request) -> Answer:
        folder, _, path = request.path.lstrip("/").partition("/")
        if folder == "hub":
            return self._mirror.answer(replace(request, path=f"/{path}"))
        if folder == "cdn":
            return self._mirror.cdn_answer(request)
        host, _, below = MIRRORED.get(folder, f"{MIRROR_HOST}/{folder}").partition("/")
        return static_answer(self.state / "static", replace(request, host=host, path=f"{below}/{path}"))

    def fault_for(self, request: Request) -> Fault | None:
        """Return the first fault that meets this request and is not used up; using it counts."""
        with self._lock:
            for fault in read_faults(self.state):
                if fault.meets(request.method, request.host, request.path) and (
                    fault.times == 0 or self._used[fault.id] < fault.times
                ):
                    self._used[fault.id] += 1
                    return fault
        return None

    def still_has(self, fault: Fault) -> bool:
        """Whether a fault has not been cleared since."""
        return any(one.id == fault.id for one in read_faults(self.state))

    def record(self, row: dict[str, Any]) -> None:
        """Write one line about an answered request."""
        with self._lock, (self.state / REQUESTS_FILE).open("a", encoding="utf-8") as log:
            log.write(json.dumps(row) + "\n")


def refusal(fault: Fault) -> Answer | None:
    """Return the answer of a fault that is a status code, None for one that spoils a body."""
    if not fault.kind.isdigit():
        return None
    message, more = _MESSAGES[fault.kind], {}
    if fault.kind == "429":
        wait = str(int(float(fault.value or 5)))
        more = {"Retry_After": wait, "RateLimit": f'"resolvers";r=0;t={wait}'}
    code = str(fault.value) if fault.kind == "404" and fault.value else _CODES.get(fault.kind, "")
    return error_answer(int(fault.kind), code, message, **more)


def byte_range(header: str, size: int) -> tuple[int, int] | None:
    """Return (first, last + 1) of a `Range` header over `size` bytes; None when it asks for nothing that is there."""
    first, _, last = header.removeprefix("bytes=").partition("-")
    if not first:
        return max(size - int(last), 0), size
    end = min(int(last) + 1, size) if last else size
    return (int(first), end) if int(first) < end else None


def pieces(answer: Answer, start: int, end: int) -> Iterator[bytes]:
    """Yield the body's bytes [start, end) in pieces."""
    if answer.file is None:
        yield answer.data[start:end]
        return
    with answer.file.open("rb") as file:
        file.seek(start)
        while start < end:
            piece = file.read(min(_PIECE, end - start))
            if not piece:
                return
            start += len(piece)
            yield piece


class Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    server_version = "lab"
    timeout = _IDLE_SECONDS
    server: WebServer

    def do_GET(self) -> None:
        """Answer with a body."""
        self._serve()

    def do_HEAD(self) -> None:
        """Answer with headers alone."""
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing to the terminal; requests are recorded in the state folder."""

    def _read_request(self) -> Request:
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
        return Request(self.command, host, unquote(url.path), dict(parse_qsl(url.query)), headers)

    def _serve(self) -> None:
        request = self._read_request()
        fault = self.server.site.fault_for(request)
        answer = (refusal(fault) if fault else None) or self.server.site.answer(request)
        status, start, end = self._span(request, answer)
        sent = 0
        try:
            self._send_head(answer, status, start, end)
            if self.command == "GET":
                for piece in self._spoilt(fault, pieces(answer, start, end), end - start):
                    self.wfile.write(piece)
                    sent += len(piece)
        except (OSError, ssl.SSLError):
            self.close_connection = True
        self._record(request, status, sent, fault)
        if fault is not None and fault.kind == "stall":
            self.server.ended.wait(STALL_SECONDS)

    def _record(self, request: Request, status: int, sent: int, fault: Fault | None) -> None:
        self.server.site.record(
            {
                "at": round(time.time(), 3),
                "client": self.client_address[0],
                "method": request.method,
                "host": request.host,
                "path": request.path,
                "range": request.headers.get("range", ""),
                "status": status,
                "bytes": sent,
                "token": bool(request.token),
                "fault": fault.kind if fault else "",
            }
        )

    def _span(self, request: Request, answer: Answer) -> tuple[int, int, int]:
        size = answer.size()
        wanted = request.headers.get("range", "")
        if answer.file is None or answer.status != 200 or not wanted.startswith("bytes="):
            return answer.status, 0, size
        span = byte_range(wanted, size)
        return (206, *span) if span else (416, 0, 0)

    def _send_head(self, answer: Answer, status: int, start: int, end: int) -> None:
        self.send_response(status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.file is not None:
            self.send_header("Accept-Ranges", "bytes")
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{answer.size()}")
        if status == 416:
            self.send_header("Content-Range", f"bytes */{answer.size()}")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()

    def _spoilt(self, fault: Fault | None, body: Iterator[bytes], length: int) -> Iterator[bytes]:
        if fault is None or fault.kind.isdigit():
            yield from body
        elif fault.kind == "slow":
            yield from _slowed(body, float(fault.value or 65536), lambda: self.server.site.still_has(fault))
        elif fault.kind == "wrong_bytes":
            yield from _changed(body, length // 2)
        else:
            yield from _first(body, self._kept(fault, length))
            self.wfile.flush()
            self.close_connection = True

    def _kept(self, fault: Fault, length: int) -> int:
        if fault.kind == "stall":
            return int(float(fault.value or 0))
        return int(length * float(fault.value if fault.value is not None else 0.5))


def _slowed(body: Iterator[bytes], rate: float, is_slow: Callable[[], bool]) -> Iterator[bytes]:
    """Yield a body at a rate, until the fault is cleared: so a test decides itself how long a download lasts."""
    step = max(int(rate / 10), 1)
    for piece in body:
        sent = 0
        while sent < len(piece) and is_slow():
            part = piece[sent : sent + step]
            sent += len(part)
            yield part
            time.sleep(len(part) / rate)
        yield piece[sent:]


def _changed(body: Iterator[bytes], where: int) -> Iterator[bytes]:
    for piece in body:
        if 0 <= where < len(piece):
            piece = piece[:where] + bytes([piece[where] ^ 0xFF]) + piece[where + 1 :]
        where -= len(piece)
        yield piece


def _first(body: Iterator[bytes], count: int) -> Iterator[bytes]:
    for piece in body:
        if count <= 0:
            return
        yield piece[:count]
        count -= len(piece)


class WebServer(ThreadingHTTPServer):
    """Threads over one listening socket, with TLS when certificate and key are given."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, bind: tuple[str, int], site: Site, tls: ssl.SSLContext | None = None) -> None:
        self.site = site
        self.ended = threading.Event()
        self._tls = tls
        super().__init__(bind, Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept; the TLS handshake waits for the connection's own thread, so that no client holds up the others."""
        connection, address = super().get_request()
        if self._tls is None:
            return connection, address
        return self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that goes away is not an error of the lab's."""

    def server_close(self) -> None:
        """Let stalled answers end, then close."""
        self.ended.set()
        super().server_close()


def provide_encodings(state: Path, cache: Path) -> None:
    """Put the real encodings where their host is answered from."""
    target = state / "static" / ENCODINGS_HOST / "encodings"
    target.mkdir(parents=True, exist_ok=True)
    for file in ensure_encodings(cache):
        shutil.copyfile(file, target / file.name)


def main() -> None:
    """Serve until a signal ends it."""
    parser = argparse.ArgumentParser(prog="python -m rackwright_lab.servers.web", description=__doc__)
    parser.add_argument("--bind", required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--cert", required=True, type=Path)
    parser.add_argument("--key", required=True, type=Path)
    parser.add_argument("--state", required=True, type=Path)
    parser.add_argument("--cache", type=Path, default=Path("/var/cache/rackwright-lab"))
    given = parser.parse_args()
    given.state.mkdir(parents=True, exist_ok=True)
    provide_encodings(given.state, given.cache)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(given.cert, given.key)
    address, _, port = given.bind.rpartition(":")
    with WebServer((address, int(port)), Site(given.state), tls) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
