"""A BitTorrent tracker (BEP 3, compact answers by BEP 23) that remembers who asked, until it ends.

`python3 tracker.py PORT`. aria2 finds its peers by a tracker alone.
"""

from __future__ import annotations

import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

INTERVAL = 5
PEERS: dict[tuple[str, int], None] = {}


class Tracker(BaseHTTPRequestHandler):
    """Answers one client's question."""

    def do_GET(self) -> None:
        """Remember the client, and answer with all others."""
        query = parse_qs(urlsplit(self.path).query)
        me = (self.client_address[0], int(query["port"][0]))
        if query.get("event") == ["stopped"]:
            PEERS.pop(me, None)
        else:
            PEERS[me] = None
        body = answer([peer for peer in list(PEERS) if peer != me])
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


def answer(peers: list[tuple[str, int]]) -> bytes:
    """Return the answer that names these peers."""
    rows = b"".join(socket.inet_aton(address) + port.to_bytes(2, "big") for address, port in peers)
    return b"d8:intervali%de12:min intervali%de5:peers%d:%se" % (INTERVAL, INTERVAL, len(rows), rows)


if __name__ == "__main__":
    ThreadingHTTPServer(("", int(sys.argv[1])), Tracker).serve_forever()
