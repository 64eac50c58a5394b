"""Serves a bundle on a port of this machine: as registry, as hub, and files; `python -m rackwright.bundle.serve DIR`.

It prints its port, and ends when its standard input does. Each file is hashed before its first byte leaves.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from rackwright.adapter.concurrency import new_lock, spawn
from rackwright.bundle.catalog import Catalog, StoredPiece, read_catalog
from rackwright.bundle.checking import hash_of, used_by
from rackwright.messages import coded, printable
from rackwright.settings.from_bundle import ENCODINGS, HUB, PACKAGES
from rackwright.settings.image_reference import tag_of
from rackwright.sources.registry import path_of

if TYPE_CHECKING:
    from rackwright.adapter.concurrency import Lock

SECONDS = 300
"""Seconds for which a client may keep a connection without a word."""
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")
_MANIFEST = re.compile(r"/v2/(.+)/manifests/(.+)")
_BLOB = re.compile(r"/v2/.+/blobs/sha256:([0-9a-f]{64})")
_REVISION = re.compile(rf"/{HUB}/api/models/([^/]+/[^/]+)/revision/([0-9a-f]{{40}})")
_TREE = re.compile(rf"/{HUB}/api/models/([^/]+/[^/]+)/tree/([0-9a-f]{{40}})")
_RESOLVE = re.compile(rf"/{HUB}/([^/]+/[^/]+)/resolve/([0-9a-f]{{40}})/(.+)")


@dataclass
class StoredAnswer:
    """Some bytes of the bundle, or JSON."""

    sha256: str = ""
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Shelf:
    """A bundle, and what of it is verified."""

    folder: Path
    catalog: Catalog
    right: dict[str, bool] = field(default_factory=dict)
    _locks: dict[str, Lock] = field(default_factory=dict)
    _lock: Lock = field(default_factory=new_lock)

    def answer(self, path: str) -> StoredAnswer | None:
        """Return what a path asks for; None where the bundle does not have it."""
        if path == "/v2/":
            return StoredAnswer(json={}, headers={"Docker-Distribution-Api-Version": "registry/2.0"})
        for pattern, find in (
            (_MANIFEST, self._manifest),
            (_BLOB, self._blob),
            (_REVISION, self._revision),
            (_TREE, self._tree),
            (_RESOLVE, self._resolve),
        ):
            if found := pattern.fullmatch(path):
                return find(*found.groups())
        return self._file(*path.lstrip("/").split("/"))

    def _manifest(self, name: str, reference: str) -> StoredAnswer | None:
        for image in self.catalog.images:
            digest = reference if reference.startswith("sha256:") else ""
            if not digest and (path_of(image.reference), tag_of(image.reference)) == (name, reference):
                digest = image.digest
            if kind := image.kinds.get(digest.removeprefix("sha256:")):
                headers = {"Content-Type": kind, "Docker-Content-Digest": digest}
                return StoredAnswer(digest.removeprefix("sha256:"), headers=headers)
        return None

    def _blob(self, sha256: str) -> StoredAnswer | None:
        is_layer = any(sha256 in image.layers for image in self.catalog.images)
        return StoredAnswer(sha256, headers={"Docker-Content-Digest": f"sha256:{sha256}"}) if is_layer else None

    def _revision(self, repository: str, commit: str) -> StoredAnswer | None:
        files = self.catalog.models.get(f"{repository}@{commit}")
        if files is None:
            return None
        siblings = [{"rfilename": path} for path in files]
        return StoredAnswer(json={"id": repository, "modelId": repository, "sha": commit, "siblings": siblings})

    def _tree(self, repository: str, commit: str) -> StoredAnswer | None:
        files = self.catalog.models.get(f"{repository}@{commit}")
        return None if files is None else StoredAnswer(json=[_row(path, file) for path, file in files.items()])

    def _resolve(self, repository: str, commit: str, path: str) -> StoredAnswer | None:
        file = self.catalog.models.get(f"{repository}@{commit}", {}).get(path)
        if file is None:
            return None
        tag = f'"{file.blob or file.sha256}"'
        headers = {"ETag": tag, "X-Linked-ETag": tag, "X-Linked-Size": str(file.size), "X-Repo-Commit": commit}
        return StoredAnswer(file.sha256, headers=headers)

    def _file(self, kind: str, *path: str) -> StoredAnswer | None:
        files: Mapping[str, str] = {}
        if kind == ENCODINGS and len(path) == 1:
            files = self.catalog.encodings
        if kind == PACKAGES and len(path) > 1:
            files = self.catalog.packages.get(path[0], {})
        sha256 = files.get("/".join(path[-1:] if kind == ENCODINGS else path[1:]))
        return StoredAnswer(sha256) if sha256 else None

    def is_right(self, piece: StoredPiece) -> bool:
        """Hash a file, once; where its bytes are others, say so to the operator."""
        with self._lock:
            lock = self._locks.setdefault(piece.path, new_lock())
        with lock:
            if piece.path not in self.right:
                self.right[piece.path] = hash_of(self.folder / piece.path) == piece.sha256
                if not self.right[piece.path]:
                    self._report(piece)
        return self.right[piece.path]

    def report_unreadable(self, piece: StoredPiece, error: OSError) -> None:
        """Say to the operator that a file cannot be read any longer: its disk may be gone."""
        text = f"{self._name(piece)} cannot be read any longer: {error.strerror}"
        _say(coded("RW3811", f"{text}; next: look at its disk, and run again"))

    def _report(self, piece: StoredPiece) -> None:
        text = f"{self._name(piece)} holds other bytes than SHA256SUMS says, and is not given to any host"
        _say(coded("RW3893", f"{text}; next: copy it again"))

    def _name(self, piece: StoredPiece) -> str:
        return f"{self.folder / piece.path} ({used_by(self.catalog, piece.path)})"


def _say(text: str) -> None:
    print(printable(f"rackwright: {text}"), file=sys.stderr, flush=True)


def _row(path: str, file: Any) -> dict[str, Any]:
    row = {"type": "file", "path": path, "size": file.size, "oid": file.blob or file.sha256[:40]}
    large = {"oid": file.sha256, "size": file.size, "pointerSize": 134}
    return row if file.blob else {**row, "lfs": large}


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"
    """Docker tries TLS first, and continues in clear where the answer begins as one of HTTP does."""
    timeout = SECONDS
    shelf: Shelf

    def do_GET(self) -> None:
        """Answer with the bytes."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer with the headers alone."""
        self._answer(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: the hosts' jobs say what they fetch."""

    def _answer(self, with_body: bool) -> None:
        answer = self.shelf.answer(unquote(urlsplit(self.path).path))
        if answer is None:
            self._send_text(404, b"not in this bundle\n", {}, with_body)
        elif answer.sha256:
            self._send_stored(answer, with_body)
        else:
            kind = {"Content-Type": "application/json", **answer.headers}
            self._send_text(200, json.dumps(answer.json).encode(), kind, with_body)

    def _send_text(self, status: int, body: bytes, headers: Mapping[str, str], with_body: bool) -> None:
        self._begin(status, {**headers, "Content-Length": str(len(body))})
        if with_body:
            self.wfile.write(body)

    def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_stored(self, answer: StoredAnswer, with_body: bool) -> None:
        stored = self.shelf.catalog.stored[answer.sha256]
        start, end = 0, stored.size
        wanted = _RANGE.fullmatch(self.headers.get("Range", ""))
        if wanted:
            start, end = int(wanted[1]), min(int(wanted[2]) + 1, end) if wanted[2] else end
            if start >= end:
                self._send_text(416, b"", {"Content-Range": f"bytes */{stored.size}"}, with_body)
                return
        headers = {"Accept-Ranges": "bytes", "Content-Length": str(end - start), **answer.headers}
        headers.setdefault("Content-Type", "application/octet-stream")
        spans = [*_spans(stored.pieces, start, end)]
        if with_body and spans and not self.shelf.is_right(spans[0][0]):
            self._send_text(404, b"damaged in the bundle\n", {}, with_body)
            return
        more = {"Content-Range": f"bytes {start}-{end - 1}/{stored.size}"} if wanted else {}
        self._begin(206 if wanted else 200, {**headers, **more})
        if with_body:
            self._send_spans(spans)

    def _send_spans(self, spans: list[tuple[StoredPiece, int, int]]) -> None:
        self.wfile.flush()
        for piece, start, count in spans:
            if not self.shelf.is_right(piece):
                self.close_connection = True
                return
            try:
                with (self.shelf.folder / piece.path).open("rb") as handle:
                    self.connection.sendfile(handle, start, count)
            except (ConnectionError, TimeoutError):
                raise  # the client went away
            except OSError as error:
                self.shelf.report_unreadable(piece, error)
                self.close_connection = True
                return


def _spans(pieces: list[StoredPiece], start: int, end: int) -> list[tuple[StoredPiece, int, int]]:
    """Return the parts of pieces that make a range of their whole: piece, offset, count."""
    found, offset = [], 0
    for piece in pieces:
        first, last = max(start - offset, 0), min(end - offset, piece.size)
        if first < last:
            found.append((piece, first, last - first))
        offset += piece.size
    return found


class BundleServer(ThreadingHTTPServer):
    """All connections of a run."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing of a client that went away."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def main() -> None:
    """Serve until standard input ends."""
    folder = Path(sys.argv[1])
    Handler.shelf = Shelf(folder, read_catalog(folder))
    server = BundleServer(("127.0.0.1", 0), Handler)
    spawn(server.serve_forever)
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
