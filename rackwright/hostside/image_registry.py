"""Serve the files of one image to this host's own Docker: a registry that only reads, on a loopback address.

`python3 image_registry.py FOLDER ADDRESS PORT KINDS`: FOLDER is an OCI image layout, KINDS has the media type of each
manifest by its SHA-256, as JSON. It ends with the job that started it. Docker holds each byte against its digest.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

WANTED = re.compile(r"/v2/.+/(manifests|blobs)/sha256:([0-9a-f]{64})")
RANGE = re.compile(r"bytes=(\d+)-(\d*)")
SECONDS = 300
"""Seconds for which a client may keep a connection without a word."""


class ImageHandler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"
    """Docker tries TLS first, and continues in clear where the answer begins as one of HTTP does."""
    timeout = SECONDS
    folder: Path
    kinds: Mapping[str, str]

    def do_GET(self) -> None:
        """Answer with the bytes."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer with the headers alone."""
        self._answer(with_body=False)

    def log_message(self, *_: Any) -> None:
        """Print nothing: the job says how far Docker is."""

    def _answer(self, with_body: bool) -> None:
        if self.path in ("/v2", "/v2/"):
            self._head(200, 2, {"Content-Type": "application/json"})
            self.wfile.write(b"{}" if with_body else b"")
            return
        found = WANTED.fullmatch(self.path)
        kind = self._kind(*found.groups()) if found else None
        try:
            if found is None or kind is None:
                raise FileNotFoundError
            with (self.folder / "blobs/sha256" / found[2]).open("rb") as file:
                self._send(file, found[2], kind, with_body)
        except FileNotFoundError:
            self._head(404, 0, {})

    def _kind(self, place: str, sha256: str) -> Any:
        """Return the media type of a file; None where it is not asked for as what it is."""
        kind = self.kinds.get(sha256)
        return kind if place == "manifests" else None if kind else "application/octet-stream"

    def _send(self, file: Any, sha256: str, kind: str, with_body: bool) -> None:
        size = os.fstat(file.fileno()).st_size
        wanted = RANGE.fullmatch(self.headers.get("Range", ""))
        start = int(wanted[1]) if wanted else 0
        end = min(int(wanted[2]) + 1, size) if wanted and wanted[2] else size
        if wanted and start >= end:
            self._head(416, 0, {"Content-Range": f"bytes */{size}"})
            return
        headers = {"Content-Type": kind, "Docker-Content-Digest": f"sha256:{sha256}", "Accept-Ranges": "bytes"}
        if wanted:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        self._head(206 if wanted else 200, end - start, headers)
        if with_body:
            with suppress(ConnectionError):
                self.connection.sendfile(file, start, end - start)

    def _head(self, status: int, size: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.flush()


def main() -> None:
    """Serve until the job ends this."""
    folder, address, port, kinds = sys.argv[1:5]
    ImageHandler.folder, ImageHandler.kinds = Path(folder), json.loads(kinds)
    server = ThreadingHTTPServer((address, int(port)), ImageHandler)
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    main()
