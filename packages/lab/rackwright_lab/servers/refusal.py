"""`python -m rackwright_lab.servers.refusal`: an HTTPS server that answers everything with one status."""

from __future__ import annotations

import argparse
import ssl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

BODY = b'{"errors":[{"code":"UNAVAILABLE","message":"service unavailable"}]}\n'


def handler_for(status: int) -> type[BaseHTTPRequestHandler]:
    """Return a request handler whose every answer has this status."""

    class Refuse(BaseHTTPRequestHandler):
        def _refuse(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(BODY)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = _refuse  # noqa: N815

    return Refuse


def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser(prog="python -m rackwright_lab.servers.refusal", description=__doc__)
    parser.add_argument("--bind", required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--cert", required=True, type=Path)
    parser.add_argument("--key", required=True, type=Path)
    parser.add_argument("--status", required=True, type=int)
    args = parser.parse_args()
    address, _, port = args.bind.rpartition(":")
    server = ThreadingHTTPServer((address, int(port)), handler_for(args.status))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(args.cert, args.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
