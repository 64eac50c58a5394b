"""How the head of a group asks its own endpoint whether a silent member still counts: by a token, with the key."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from rackwright.hostside import host_text

KEY = "Authorization: Bearer a-key-of-sixteen-letters"
ASKED = 'model=tiny grace=5 home="$1" url="$2"; answers'


@pytest.fixture
def guarded() -> Iterator[str]:
    """Yield the address of a server that answers completions to every client with the key."""

    class Engine(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            well = self.path == "/v1/completions" and f"Authorization: {self.headers['Authorization']}" == KEY
            self.send_response(200 if well else 401)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Engine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def answers(home: Path, url: str, **environment: str) -> bool:
    """Run the script's own function by bash, as the head does, and return its result."""
    _, begun, remaining = host_text("run_member.bash").partition("\nanswers() {")
    function = f"answers() {{{remaining.partition(chr(10) + '}')[0]}\n}}"
    assert begun
    words = ["bash", "-uc", f"{function}\n{ASKED}", "bash", str(home), url]
    return subprocess.run(words, env={"PATH": "/usr/bin:/bin", **environment}, check=False).returncode == 0


def test_the_head_sends_the_key_of_its_binding(guarded: str, tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/0a1b2c3d4e5f").write_text(f"{KEY}\n")
    assert answers(tmp_path, guarded, KEY="0a1b2c3d4e5f")
    assert not answers(tmp_path, guarded)
