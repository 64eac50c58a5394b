"""A receiver of webhooks on loopback that keeps what it is sent, and answers as it is asked to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """Its address, and the requests that it got: path, headers, body."""

    url: str
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    status: int = 200
    answer: bytes = b"ok"

    @property
    def bodies(self) -> list[Any]:
        """The bodies as JSON."""
        return [json.loads(body) for _, _, body in self.requests]


@contextmanager
def receiver(address: str = "127.0.0.1") -> Iterator[Receiver]:
    """Run one."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(found.status)
            self.send_header("Content-Length", str(len(found.answer)))
            self.end_headers()
            self.wfile.write(found.answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((address, 0), Handler)
    found = Receiver(f"http://{address}:{server.server_port}/hooks/abc")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
