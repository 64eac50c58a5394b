"""Hosts of the hand-on program on loopback, each with its own address, and a hub that can be slow, wrong or gone."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from rackwright.hostside.packed import HAND_ON, packed

MIB = 1 << 20
TOKEN = "a-token-of-this-run-with-enough-characters"
HUB_TOKEN = "hf_granted"


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program as a host gets it."""
    file = tmp_path_factory.mktemp("program") / "hand_on.pyz"
    file.write_bytes(base64.b64decode(packed(*HAND_ON)))
    return file


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def content(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def listed(files: dict[str, bytes]) -> list[dict[str, Any]]:
    return [{"path": path, "size": len(data), "sha256": sha256(data)} for path, data in files.items()]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Hub:
    """An HTTP server with ranges. rate: bytes a second; break_at: ends a connection once when so much was sent."""

    def __init__(self, files: dict[str, bytes], rate: float | None = None) -> None:
        self.files, self.rate, self.break_at = files, rate, -1
        self.sent: Counter[str] = Counter()
        self.asked: list[tuple[str, str, str]] = []
        self.status = 0
        self.ranges = True
        self.elsewhere = ""
        """A server to which every request is redirected."""
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                hub.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        path = unquote(request.path).lstrip("/")
        self.asked.append((path, request.headers.get("Range", ""), request.headers.get("Authorization", "")))
        if self.elsewhere:
            request.send_response(302)
            request.send_header("Location", self.elsewhere + path)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        data = self.files.get(path)
        if data is None or self.status:
            request.send_response(self.status or 404)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        first, _, last = request.headers.get("Range", "bytes=0-")[len("bytes=") :].partition("-")
        start, end = int(first), int(last or len(data) - 1) + 1
        start, end = (start, end) if self.ranges else (0, len(data))
        request.send_response(206 if (start, end) != (0, len(data)) else 200)
        request.send_header("Content-Length", str(end - start))
        request.end_headers()
        self._send(request, path, data[:end], start)

    def _send(self, request: http.server.BaseHTTPRequestHandler, path: str, data: bytes, start: int) -> None:
        block, begun = 1 << 16, time.monotonic()
        for here in range(start, len(data), block):
            if 0 <= self.break_at <= here:
                self.break_at = -1
                request.close_connection = True
                return
            with suppress(ConnectionError):
                request.wfile.write(data[here : here + block])
            self.sent[path] += len(data[here : here + block])
            if self.rate:
                time.sleep(max(0, begun + (here + block - start) / self.rate - time.monotonic()))


@dataclass
class Host:
    """A host: its address, its folder, and the program once it was started."""

    fleet: Fleet
    name: str
    address: str
    folder: Path
    process: subprocess.Popen[str] | None = None
    python: list[str] = field(default_factory=list)

    def source(self) -> dict[str, Any]:
        return {"name": self.name, "address": self.address, "port": self.fleet.port}

    def start(
        self, sources: list[Host] | None = None, allow: list[Host] | None = None, limit: int = 0, **spec: Any
    ) -> None:
        """Start it; by default as the next of a chain in the order of the fleet. limit: bytes that a file may have."""
        number = self.fleet.hosts.index(self)
        before, after = self.fleet.hosts[:number][::-1], self.fleet.hosts[number + 1 :]
        sources = before + (after[::-1] if before else []) if sources is None else sources
        allow = after + before[:-1] if allow is None else allow
        whole = (
            {
                "files": listed(self.fleet.files),
                "folder": str(self.folder),
                "listen": {"address": self.address, "port": self.fleet.port, "allow": [one.address for one in allow]},
                "sources": [one.source() for one in sources],
                "origin": None if sources else {"url": self.fleet.hub.url, "authorised": True},
                "rate_mib": None,
                "serve_mib": None,
                "stall": 5,
                "start": 5,
                "linger": 10,
                "secrets": str(self.fleet.secrets),
            }
            | ({"start": spec["stall"]} if "stall" in spec else {})
            | spec
        )
        self.log = (self.folder.parent / f"{self.name}.log").open("a")
        command = [*(self.python or [self.fleet.python]), str(self.fleet.program), json.dumps(whole)]
        limited = ["prlimit", f"--fsize={limit}", *command] if limit else command
        self.process = subprocess.Popen(limited, stdout=self.log, stderr=subprocess.STDOUT, text=True)

    def clear(self) -> None:
        """Begin again with an empty folder and an empty log."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        (self.folder.parent / f"{self.name}.log").write_text("")

    def text(self) -> str:
        return (self.folder.parent / f"{self.name}.log").read_text()

    def wait(self, seconds: float = 60) -> int:
        assert self.process
        return self.process.wait(seconds)

    def wait_for(self, text: str, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.text():
            assert time.monotonic() < deadline, f"{self.name}: no {text!r} in:\n{self.text()}"
            assert self.process
            assert self.process.poll() is None or text in self.text(), f"{self.name} ended:\n{self.text()}"
            time.sleep(0.02)

    def kill(self, number: int = signal.SIGKILL, wait: bool = True) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
            if wait:
                self.process.wait(10)

    def have(self) -> int:
        """Return the bytes of unfinished and finished files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def wait_for_bytes(self, size: int, seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while self.have() < size:
            assert time.monotonic() < deadline, self.text()
            time.sleep(0.005)

    def is_whole(self) -> bool:
        """Return True if exactly the published files are there."""
        return all(
            (self.folder / path).is_file() and (self.folder / path).read_bytes() == data
            for path, data in self.fleet.files.items()
        )

    def wrong(self) -> list[str]:
        """Return files at their final paths that are not the published ones."""
        at_place = [path for path in self.folder.rglob("*") if path.is_file() and ".parts" not in path.parts]
        names = {str(path.relative_to(self.folder)): path for path in at_place}
        return [name for name, path in names.items() if self.fleet.files.get(name) != path.read_bytes()]


@dataclass
class Fleet:
    """Hosts in the order of their chain."""

    root: Path
    program: Path
    files: dict[str, bytes]
    hub: Hub
    hosts: list[Host] = field(default_factory=list)
    python: str = os.environ.get("HAND_ON_PYTHON", sys.executable)
    port: int = field(default_factory=free_port)

    @property
    def secrets(self) -> Path:
        return self.root / "secrets"

    def close(self) -> None:
        for host in self.hosts:
            host.kill()
        self.hub.close()

    def listening(self) -> list[str]:
        """Return the hosts on whose port something listens."""
        return [host.name for host in self.hosts if _answers(host.address, self.port)]


def _answers(address: str, port: int) -> bool:
    with socket.socket() as link:
        link.settimeout(1)
        return link.connect_ex((address, port)) == 0


class Fleets:
    """Makes fleets, and ends them after the test."""

    def __init__(self, root: Path, program: Path) -> None:
        self.root, self.program = root, program
        self.made: list[Fleet] = []

    def __call__(self, hosts: int, files: dict[str, bytes] | None = None, rate: float | None = None) -> Fleet:
        files = files if files is not None else {"a/model.safetensors": content(5 * MIB + 77), "config.json": b"{}"}
        root = self.root / f"fleet{len(self.made)}"
        (root / "secrets").mkdir(parents=True)
        (root / "secrets/run_token").write_text(TOKEN)
        (root / "secrets/hub_token").write_text(HUB_TOKEN)
        fleet = Fleet(root, self.program, files, Hub(files, rate))
        for number in range(hosts):
            folder = root / f"h{number}"
            folder.mkdir()
            fleet.hosts.append(Host(fleet, f"host-{number}", f"127.0.{len(self.made)}.{number + 2}", folder))
        self.made.append(fleet)
        return fleet


@pytest.fixture
def fleets(tmp_path: Path, program: Path) -> Iterator[Fleets]:
    made = Fleets(tmp_path, program)
    yield made
    for fleet in made.made:
        fleet.close()
