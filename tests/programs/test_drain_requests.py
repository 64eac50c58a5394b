"""The requests that a drain counts: real script, `ss` and sockets; only systemctl and docker are the test's."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from rackwright.concerns.endpoint.switch.job import drain_script
from rackwright.paths import WORD_NOTES
from rackwright.plan.drain_end import DrainEnd, parse_drain

SHELL = shutil.which("dash") or "sh"
LIMIT = 60
"""Seconds: no test waits for it but the one of the limit."""
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK"


class Engine:
    """A server that answers as a request says: `wait SECONDS`, `last SECONDS` (then it hangs up), `parts COUNT GAP`."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client, suppress(ConnectionError):
            while request := client.recv(4096).decode().split():
                count, gap = (int(request[1]), request[2]) if request[0] == "parts" else (1, request[1])
                for _ in range(count):
                    time.sleep(float(gap))
                    client.sendall(ANSWER)
                if request[0] == "last":
                    return

    def close(self) -> None:
        """Take no more clients."""
        self._listening.close()


@pytest.fixture
def engine() -> Iterator[Engine]:
    started = Engine()
    yield started
    started.close()


@contextmanager
def client(engine: Engine, question: str = "", again: float = 0) -> Iterator[socket.socket]:
    """Connect and ask; again: ask again after so many seconds, as a monitor does on one connection."""
    with socket.create_connection(("127.0.0.1", engine.port)) as connection:
        ended = threading.Event()

        def ask() -> None:
            while question:
                connection.sendall(question.encode())
                connection.recv(4096)
                if not again or ended.wait(again):
                    return

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        yield connection
        ended.set()
        thread.join(LIMIT)


@pytest.fixture
def drained(engine: Engine, tmp_path: Path) -> Callable[..., float]:
    """Return a function that drains the engine, and returns after how many seconds that ended."""
    (tmp_path / "bin").mkdir()
    for name, text in {"systemctl": "exit 0", "docker": f"echo {os.getpid()}"}.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    for name in ("nonce", "log", "events"):
        (tmp_path / name).touch()
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "JOB": str(tmp_path)}

    def drain(limit: int = LIMIT) -> float:
        begun = time.monotonic()
        script = drain_script("llm", engine.port, limit, "exit 0").replace(WORD_NOTES, str(tmp_path / "notes"))
        run = subprocess.run(
            [SHELL, "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=90
        )
        assert (run.returncode, run.stderr) == (0, "")
        return time.monotonic() - begun

    return drain


def test_without_a_client_it_ends_at_once(drained: Callable[..., float]) -> None:
    assert drained() < LIMIT / 6


def test_a_connection_that_never_asked_does_not_hold_it(engine: Engine, drained: Callable[..., float]) -> None:
    with client(engine):
        assert drained() < LIMIT / 3


def test_a_monitor_that_asks_again_and_again_on_one_connection_does_not_hold_it(
    engine: Engine, drained: Callable[..., float]
) -> None:
    with client(engine, "wait 0.05", again=0.9):
        time.sleep(1)
        assert drained() < LIMIT / 3


def test_a_silent_request_holds_it_until_its_answer(engine: Engine, drained: Callable[..., float]) -> None:
    # Longer than an answer in parts may be silent, so that what counts is who sent last.
    with client(engine, "last 30"):
        assert 29 < drained() < LIMIT


def test_an_answer_in_slow_parts_holds_it_until_the_last_one(engine: Engine, drained: Callable[..., float]) -> None:
    with client(engine, "parts 5 2.5"):
        time.sleep(0.2)
        begun = time.monotonic()
        waited = drained()
        assert waited > 11
        assert time.monotonic() - begun < LIMIT + 5


def ended(folder: Path) -> DrainEnd | None:
    """Return what the last drain said at its end."""
    (text,) = [row.split()[-1] for row in (folder / "events").read_text().splitlines() if " drained " in row]
    return parse_drain(base64.b64decode(text).decode())


def test_a_request_that_never_ends_holds_it_for_the_limit_and_is_counted(
    engine: Engine, drained: Callable[..., float], tmp_path: Path
) -> None:
    with client(engine, "wait 12"):
        assert 4 <= drained(limit=4) < 11
        end = ended(tmp_path)
        assert end is not None
        assert (end.endpoint, end.cut, end.gone) == ("llm", 1, ())


def test_a_gateway_hears_it_before_the_requests_are_counted(drained: Callable[..., float], tmp_path: Path) -> None:
    now = float(Path("/proc/uptime").read_text().split()[0])
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/gateway-gone@llm").write_text(f"last={now - 60:.2f}\nprevious={now - 62:.2f}\nword=drain\n")
    note = tmp_path / "notes/gateway-gw@llm"
    note.write_text(f"last={now:.2f}\nprevious={now - 2:.2f}\nword=ready up\n")
    begun = time.monotonic()

    def ask() -> None:
        note.write_text(f"last={now + 1000:.2f}\nprevious={now + 998:.2f}\nword=drain\n")

    asking = threading.Timer(2, ask)
    asking.start()
    assert drained() > 1
    assert time.monotonic() - begun > 2
    end = ended(tmp_path)
    assert end is not None
    assert (end.cut, end.gone) == (0, ("gone",))


def test_ten_thousand_quiet_connections_do_not_hold_it(drained: Callable[..., float], tmp_path: Path) -> None:
    clients = (f"10.0.{number >> 8}.{number & 255}:40000" for number in range(10_000))
    rows = "".join(
        f"0 0 127.0.0.1:1 {client} bytes_sent:9 bytes_received:9 lastsnd:30000 lastrcv:60000\n" for client in clients
    )
    (tmp_path / "rows").write_text(rows)
    (tmp_path / "bin/nsenter").write_text(f"#!/bin/sh\ncat {tmp_path}/rows\n")
    (tmp_path / "bin/nsenter").chmod(0o755)
    assert drained(15) < 12
