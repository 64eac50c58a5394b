"""How the head of a group asks its own endpoint whether a silent member still counts: by a token, with the key."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
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


TALK = """
RANK=1 state=running token=t mine=m word=- grace=5 engine=$$ SECONDS=0
heed() { printf '%s\\n' "$*"; [ "$1" != stop ] || exit 0; }
engine_ended() { return 1; }
"""


def heeded(*pieces: str) -> list[str]:
    """Let a member hear pieces of the head's answers, each long after the one before; returns what it heeds."""
    _, begun, remaining = host_text("run_member.bash").partition("\nhear() {")
    assert begun
    functions = f"hear() {{{remaining.partition(chr(10) + 'join() {')[0]}"
    ours, theirs = socket.socketpair()
    script = f"{functions}\n{TALK}\nwire={theirs.fileno()}; talk"
    member = subprocess.Popen(["bash", "-uc", script], stdout=subprocess.PIPE, text=True, pass_fds=[theirs.fileno()])
    theirs.close()
    with ours, member:
        for piece in pieces:
            ours.sendall(piece.encode())
            time.sleep(2.5)  # beyond its patience of a second, and its pause of another
        assert member.stdout is not None
        return member.stdout.read().splitlines()


def test_an_answer_that_comes_in_two_pieces_is_heard_whole() -> None:
    assert heeded("ready t m p - -\nrea", "dy t m p - -\n", "stop - m p - -\n") == [
        "ready t m p - -",
        "ready t m p - -",
        "stop - m p - -",
    ]
