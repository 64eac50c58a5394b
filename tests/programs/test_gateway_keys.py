"""A change of keys on a gateway (concerns/gateway/host/keys_change.sh): the real script, and Debian's HAProxy."""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rackwright.concerns.gateway.files import LEFT
from rackwright.concerns.gateway.key_change import ADMIN, JOURNAL, change_script, parse_answer, put_rows, revoked_rows
from rackwright.concerns.gateway.key_maps import FOLDER, key_maps
from rackwright.settings.gateway import Gateway
from rackwright.settings.gateway_keys import GatewayKey, GatewayKeys, sha256_of
from tests.programs.gateway_stubs import backend
from tests.programs.gateway_stubs import engine as stub_engine
from tests.programs.gateway_stubs import gateway as shipped

SHELL = shutil.which("dash") or "sh"
NOW = datetime(2026, 11, 27, tzinfo=UTC)
CONFIG = """
global
  stats socket {run}/admin.sock mode 600 level admin expose-fd listeners
defaults
  mode http
  timeout client 20s
  timeout server 20s
  timeout connect 2s
frontend f
  bind 127.0.0.1:{port}
  http-request set-var(txn.hash) req.hdr(Authorization),regsub('^Bearer ',''),sha2(256),hex,lower
  http-request set-var(txn.key) var(txn.hash),map_str({folder}/keys.map)
  http-request set-var(txn.minute) var(txn.key),map_str_int({folder}/limits.map,0)
  http-request return status 401 unless {{ var(txn.key) -m found }}
  http-request return status 200 content-type text/plain lf-string "%[var(txn.key)] %[var(txn.minute)]" if {{ path / }}
  default_backend b
backend b
  server s 127.0.0.1:{engine}
"""


class Engine(BaseHTTPRequestHandler):
    """Streams for a second and a half."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer in chunks."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for _ in range(15):
            self.wfile.write(b"5\r\nhello\r\n")
            time.sleep(0.1)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def engine() -> Iterator[int]:
    """Serve streams; the port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@dataclass
class GatewayStandin:
    """The folders of a gateway below a temporary one, and its HAProxy."""

    root: Path
    program: Path
    engine: int
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        """Write a gateway without clients."""
        self.port = free_port()
        for name in ("etc", "run", "bin"):
            (self.root / name).mkdir()
        for path, text in key_maps(Gateway(), GatewayKeys(), NOW).items():
            (self.root / "etc" / Path(path).name).write_text(text)
        self.unit_is("active")
        config = CONFIG.format(run=self.root / "run", folder=self.root / "etc", port=self.port, engine=self.engine)
        (self.root / "etc/haproxy.cfg").write_text(config)

    def unit_is(self, state: str) -> None:
        program = self.root / "bin/systemctl"
        program.write_text(f"#!/bin/sh\nexit {0 if state == 'active' else 3}\n")
        program.chmod(0o755)

    def start(self) -> None:
        words = [str(self.program), "-Ws", "-f", f"{self.root}/etc/haproxy.cfg", "-S", f"{self.root}/run/master.sock"]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait()

    def wait(self) -> None:
        end = time.monotonic() + 10
        while time.monotonic() < end:
            try:
                return socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.05)
        pytest.fail("HAProxy does not listen")

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait(10)

    def reload(self) -> None:
        assert self.process
        before = self.worker()
        self.process.send_signal(signal.SIGUSR2)
        end = time.monotonic() + 10
        while self.worker() in ("", before):
            assert time.monotonic() < end, "HAProxy does not reload"
            time.sleep(0.05)

    def worker(self) -> str:
        """Return the process that takes connections; empty during a reload."""
        with socket.socket(socket.AF_UNIX) as master:
            try:
                master.settimeout(2)
                master.connect(str(self.root / "run/master.sock"))
                master.sendall(b"show proc\n")
                master.shutdown(socket.SHUT_WR)
                text = b"".join(iter(lambda: master.recv(4096), b"")).decode()
            except OSError:
                return ""
        return text.partition("# workers\n")[2].split(" ")[0].strip()

    def change(self, rows: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return change_files(self.root, rows)

    def ask(self, key: str) -> tuple[int, str]:
        return answer(http.client.HTTPConnection("127.0.0.1", self.port, timeout=5), key)

    def lines(self, name: str) -> list[str]:
        return (self.root / "etc" / name).read_text().splitlines()


def change_files(root: Path, rows: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run the script on the files below a folder."""
    step = change_script(rows)
    assert isinstance(step.stdin, str)
    script = step.script.replace(FOLDER, f"{root}/etc").replace(LEFT, f"{root}/files")
    script = script.replace(str(Path(ADMIN).parent), f"{root}/run").replace(JOURNAL, f"{root}/run/key-changes")
    path = f"{root}/bin:{os.environ['PATH']}"
    return subprocess.run(
        [SHELL, "-c", script], input=step.stdin, env={"PATH": path}, text=True, capture_output=True, check=False
    )


def answer(connection: http.client.HTTPConnection, key: str, path: str = "/") -> tuple[int, str]:
    connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
    got = connection.getresponse()
    return got.status, got.read().decode()


@pytest.fixture
def gateway(tmp_path: Path, haproxy: Path, engine: int) -> Iterator[GatewayStandin]:
    """Run a gateway without clients."""
    found = GatewayStandin(tmp_path, haproxy, engine)
    found.start()
    yield found
    found.stop()


def key_of(name: str, key: str, **more: object) -> GatewayKey:
    return GatewayKey.model_validate({"name": name, "sha256": sha256_of(key), "created": NOW, **more})


def added(name: str, key: str, **more: object) -> Sequence[str]:
    return put_rows(Gateway(), key_of(name, key, **more))


def result(run: subprocess.CompletedProcess[str]) -> tuple[str, int]:
    found = parse_answer(run.stdout.splitlines())
    assert found, run.stderr
    return found.state, found.had


def test_a_key_counts_at_once_and_not_once_it_is_revoked(gateway: GatewayStandin) -> None:
    assert gateway.ask("k1")[0] == 401
    assert result(gateway.change(added("alice", "k1", requests_per_minute=7))) == ("took", 0)
    assert result(gateway.change(added("bob", "k2"))) == ("took", 0)
    assert (gateway.ask("k1"), gateway.ask("k2")) == ((200, "alice 7"), (200, "bob 0"))
    assert result(gateway.change(revoked_rows(["alice"], [sha256_of("k1")]))) == ("took", 1)
    assert (gateway.ask("k1")[0], gateway.ask("k2")) == (401, (200, "bob 0"))
    gateway.reload()
    assert (gateway.ask("k1")[0], gateway.ask("k2")[0]) == (401, 200)
    gateway.stop()
    gateway.start()
    assert (gateway.ask("k1")[0], gateway.ask("k2")[0]) == (401, 200)
    assert (gateway.lines("revoked"), gateway.lines("limits.map")) == ([sha256_of("k1")], [])
    assert oct((gateway.root / "etc/keys.map").stat().st_mode)[-3:] == "600"


def test_a_connection_to_a_process_from_before_a_reload_is_refused_too(gateway: GatewayStandin) -> None:
    gateway.change(added("alice", "k1"))
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=10)
    connection.request("GET", "/stream", headers={"Authorization": "Bearer k1"})
    stream = connection.getresponse()
    gateway.reload()
    assert result(gateway.change(revoked_rows(["alice"], []))) == ("took", 1)
    assert stream.read() == b"hello" * 15
    connection.auto_open = 0
    assert answer(connection, "k1")[0] == 401


def test_a_process_with_other_maps_than_its_files_is_put_right(gateway: GatewayStandin) -> None:
    gateway.change(added("alice", "k1"))
    (gateway.root / "etc/keys.map").write_text(f"{sha256_of('k2')} bob\n")
    assert result(gateway.change(added("carol", "k3"))) == ("took", 0)
    assert [gateway.ask(key)[0] for key in ("k1", "k2", "k3")] == [401, 200, 200]


def test_a_change_of_keys_is_no_edit_by_hand(gateway: GatewayStandin) -> None:
    recorded, maps = gateway.root / "files", gateway.root / "etc/keys.map"
    recorded.write_text(f"{'0' * 64} {maps}\n{'1' * 64} {gateway.root}/etc/haproxy.cfg\n")
    gateway.change(added("alice", "k1"))
    sums = [row.split() for row in recorded.read_text().splitlines()]
    assert sums[0] == [hashlib.sha256(maps.read_bytes()).hexdigest(), str(maps)]
    assert sums[1][0] == "1" * 64


def test_a_rotated_key_has_a_time_at_which_it_ends(gateway: GatewayStandin) -> None:
    old = key_of("alice", "k1", expires=NOW + timedelta(hours=1))
    assert result(gateway.change(put_rows(Gateway(), old, key_of("alice", "k2"))))[0] == "took"
    assert gateway.lines("expiries.map") == [f"{sha256_of('k1')} {int((NOW + timedelta(hours=1)).timestamp())}"]
    assert (gateway.ask("k1")[0], gateway.ask("k2")[0]) == (200, 200)
    assert result(gateway.change(revoked_rows([], [sha256_of("k1")]))) == ("took", 1)
    assert (gateway.ask("k1")[0], gateway.ask("k2")[0], gateway.lines("expiries.map")) == (401, 200, [])


def test_files_come_first_and_a_process_that_does_not_answer_is_reported(gateway: GatewayStandin) -> None:
    gateway.change(added("alice", "k1"))
    gateway.stop()
    run = gateway.change(revoked_rows(["alice"], []))
    assert (run.returncode, parse_answer(run.stdout.splitlines())) == (1, None)
    assert gateway.lines("keys.map") == []
    gateway.unit_is("inactive")
    assert result(gateway.change(added("bob", "k2"))) == ("stopped", 0)
    gateway.start()
    assert (gateway.ask("k1")[0], gateway.ask("k2")[0]) == (401, 200)


def test_a_host_without_a_gateway_says_so(tmp_path: Path, haproxy: Path, engine: int) -> None:
    found = GatewayStandin(tmp_path, haproxy, engine)
    (tmp_path / "etc/keys.map").unlink()
    assert result(found.change(added("alice", "k1"))) == ("absent", 0)
    assert not (tmp_path / "etc/keys.map").exists()


def test_what_the_script_leaves_is_what_a_deploy_writes(gateway: GatewayStandin) -> None:
    settings = Gateway(requests_per_minute=5, requests_in_flight=2)
    keys = [key_of("bob", "k2", models=("b", "a"), requests_per_minute=0), key_of("alice", "k1", expires=NOW)]
    keys.append(key_of("alice", "k3"))
    for rows in (put_rows(settings, keys[0]), put_rows(settings, *keys[1:])):
        assert result(gateway.change(rows))[0] == "took"
    before_its_end = NOW - timedelta(days=1)
    for path, text in key_maps(settings, GatewayKeys(keys=tuple(keys)), before_its_end).items():
        assert (gateway.root / "etc" / Path(path).name).read_text() == text, path


def test_the_shipped_configuration_goes_by_every_map(tmp_path: Path, haproxy: Path) -> None:
    for name in ("etc", "run", "bin"):
        (tmp_path / name).mkdir()
    with stub_engine("gpu01") as one, shipped(haproxy, tmp_path / "etc", [backend("gpt", one)]) as running:
        program = tmp_path / "bin/systemctl"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        (tmp_path / "run/admin.sock").symlink_to(tmp_path / "etc/admin.sock")
        end = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=8)
        change = partial(change_files, tmp_path)
        other = key_of("bob", "k3", models=("other",))
        for rows in (
            put_rows(Gateway(), key_of("carol", "k1", expires=end), key_of("carol", "k2")),
            put_rows(Gateway(), other),
        ):
            assert result(change(rows))[0] == "took"
        statuses = [running.ask("/v1/models", key=key).status for key in ("k1", "k2", "k3")]
        assert statuses[1:] == [200, 404]
        assert statuses[0] == 200 or datetime.now(UTC) >= end  # two changes may take that long on a busy machine
        time.sleep(max(0, (end - datetime.now(UTC)).total_seconds()) + 1.1)
        assert [running.ask("/v1/models", key=key).status for key in ("k1", "k2")] == [401, 200]
        assert result(change(revoked_rows(["carol"], [])))[1] == 2
        assert running.ask("/v1/models", key="k2").status == 401
