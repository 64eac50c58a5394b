"""The look at an engine between two deploys: real script, curl, ss and sockets; systemctl, Docker and GPUs are stubs.

Time passes by the state file of the look: what it noted is made older by so many seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.watch.engine_check import engine_check_script
from tests.lab.products import in_proof

pytestmark = pytest.mark.skipif(not shutil.which("ss") or os.geteuid() != 0, reason="needs ss, and root for nsenter")
ID = "c" * 64
PROBE_LIMIT = "--max-time 4"
KEY = "sk-look-0123456789abcdef"
STEPS = "vllm:iteration_tokens_total_count"
CONFIG = {
    "engine": "vllm", "steps": STEPS, "moves": "vllm:kv_cache_usage_perc", "sleep": "vllm:engine_sleep_state",
    "awake": 'sleep_state="awake"', "compilers": "no-such-program", "metrics": "/metrics", "health": "/health",
    "model": "m", "after": "120", "full_after": "600", "load": "1800", "fresh": "600", "batch": "1", "act": "tell",
}  # fmt: skip
TIMES = ("since", "looked", "ready", "still_since", "unanswered_since", "silent_since", "refused_since")
AGED = (*TIMES, "unavailable_since", "unread_since")


class Engine(ThreadingHTTPServer):
    """A server that counts its steps, and may stand still, stream, or answer 503."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.port = int(self.server_address[1])
        self.steps, self.cache, self.awake = 7, 0.0, 1
        self.endless = False
        self.sent = 0
        self.stuck = threading.Event()
        self.ended = threading.Event()
        self.unavailable = self.uncounted = False
        self.keys: list[str | None] = []
        self.bodies: list[str] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_: Any) -> None:
        """Leave a client that has gone."""


class _Requests(BaseHTTPRequestHandler):
    server: Engine
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/health":
            self._answer(503 if self.server.unavailable else 200, "")
        elif self.server.endless:
            self._send_for_ever()
        elif self.server.uncounted:
            self._answer(404, "")
        else:
            text = f'{STEPS}{{model_name="a b"}} {self.server.steps}\nvllm:num_requests_running 0\n'
            text += f'vllm:engine_sleep_state{{sleep_state="awake"}} {self.server.awake}\n'
            self._answer(200, f"# HELP x\n{text}vllm:kv_cache_usage_perc{{}} {self.server.cache}\n")

    def do_POST(self) -> None:
        self.server.keys.append(self.headers.get("Authorization"))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.server.bodies.append(body)
        if "stream" in body:
            self._stream()
        while self.server.stuck.is_set() and not self.server.ended.wait(0.1):
            pass
        self.server.steps += 1
        self._answer(200, "{}")

    def _stream(self) -> None:
        self.send_response(200)
        self.end_headers()
        while not self.server.ended.wait(0.2):
            self.wfile.write(b"data: token\n\n")

    def _send_for_ever(self) -> None:
        self.send_response(200)
        self.end_headers()
        part = b"x" * (1 << 20)
        with suppress(OSError):
            while self.server.sent < 400 << 20:
                self.wfile.write(part)
                self.server.sent += len(part)

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def engine() -> Iterator[Engine]:
    started = Engine()
    yield started
    started.ended.set()
    started.shutdown()
    started.server_close()


class Host:
    """A folder that stands for a host with one endpoint."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self.folder, self.home, self.engine, port = folder, folder / "endpoints" / "llm", engine, engine.port
        release = self.home / "releases" / "abc"
        release.mkdir(parents=True)
        (self.home / "current").symlink_to(release)
        (release / "health-url").write_text(f"http://127.0.0.1:{port}/health\n")
        (self.home / "keys").mkdir()
        (self.home / "keys" / "k").write_text(f"Authorization: Bearer {KEY}\n")
        (self.home / "binding").write_text("KEY=k\nGPUS=device=GPU-1234\n")
        (folder / "watched").mkdir()
        self.config = dict(CONFIG)
        self.container = ID
        self.unit = "ActiveState=active\nSubState=running\nRestart=always\nActiveEnterTimestampMonotonic=1000000"
        (folder / "bin").mkdir()
        self.program("docker", f"echo true {os.getpid()} {ID} llm")
        self.program("nvidia-smi", "echo 0")

    def program(self, name: str, text: str) -> None:
        file = self.folder / "bin" / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    @property
    def script(self) -> str:
        """Return the check with this folder for the host's own, and all processes in one container.

        No test waits for the limit of a probe that a stuck engine never answers.
        """
        whole = engine_check_script()
        assert PROBE_LIMIT in whole
        if self.engine.stuck.is_set():
            whole = whole.replace(PROBE_LIMIT, "--max-time 0.4")
        for path, name in (
            ("/etc/rackwright/watched", "watched"),
            ("/run/rackwright/watch", "states"),
            ("/run/rackwright/engines-paused", "paused"),
            ("/var/lib/rackwright/endpoints", "endpoints"),
            ("/var/lib/rackwright/drained", "drained"),
            ("/var/lib/rackwright/events", "events"),
            ("/var/lib/rackwright/notify/sent", "sent"),
        ):
            assert path in whole
            whole = whole.replace(path, str(self.folder / name))
        head, mark, behind = whole.partition("# Look at each endpoint that this host watches")
        assert mark
        stub = f"belongs() {{ inside={self.container} unit=; }}\n"
        return f"{head}{stub}{mark}{behind}"

    def look(self) -> dict[str, str]:
        """Look once; return what was noted."""
        lines = [f"{key}={value}" for key, value in self.config.items()]
        (self.folder / "watched" / "llm").write_text("\n".join([*lines, ""]))
        self.program(
            "systemctl", f'case $1 in show) cat {self.folder}/unit ;; start) echo "$*" >>{self.folder}/started ;; esac'
        )
        (self.folder / "unit").write_text(f"{self.unit}\n")
        env = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        run = subprocess.run(
            [shutil.which("dash") or "sh", "-c", self.script],
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (run.returncode, run.stderr) == (0, "")
        return self.noted

    @property
    def noted(self) -> dict[str, str]:
        return dict(row.split("=", 1) for row in (self.folder / "states" / "llm").read_text().splitlines())

    def has_sent(self, *keys: str) -> None:
        """Let the sender have sent these events, whose ends it has not sent."""
        (self.folder / "sent").mkdir()
        for key in keys:
            (self.folder / "sent" / key).touch()

    def pass_time(self, seconds: int, looks: bool = True) -> None:
        """Make all that the look has noted older; `looks`: others were made in the meantime."""
        noted = self.noted
        for key in AGED:
            if noted[key]:
                noted[key] = str(int(noted[key]) - (min(seconds, 30) if looks and key == "looked" else seconds))
        (self.folder / "states" / "llm").write_text("".join(f"{key}={value}\n" for key, value in noted.items()))

    def look_after(self, seconds: int) -> dict[str, str]:
        """Let so many seconds pass, and look; return what was noted."""
        self.pass_time(seconds)
        return self.look()

    @property
    def events(self) -> list[tuple[str, str]]:
        """Kind and state of each event, in order."""
        files = sorted(self.folder.glob("events/[0-9]*"), key=lambda file: (file.stat().st_mtime_ns, file.name))
        rows = [dict(row.split("=", 1) for row in file.read_text().splitlines()) for file in files]
        return [(row["kind"], row["state"]) for row in rows]

    @property
    def started(self) -> str:
        file = self.folder / "started"
        return file.read_text() if file.exists() else ""


@pytest.fixture
def host(tmp_path: Path, engine: Engine) -> Host:
    return Host(tmp_path, engine)


@pytest.mark.parametrize("entered", ["1000000", "4200000000000000"])
def test_a_unit_is_ready_since_its_start_however_long_the_host_is_up(host: Host, entered: str) -> None:
    host.unit = host.unit.replace("Monotonic=1000000", f"Monotonic={entered}")
    assert host.look()["ready"] == entered[:-6]


def test_a_probe_that_is_an_engines_first_request_has_a_prompt_of_several_tokens(host: Host) -> None:
    # A first prompt of one token, as no user sends it, ends vLLM 0.32.0 on a CPU with AMX.
    host.look()
    probe = json.loads(host.engine.bodies[0])
    assert (len(probe["prompt"].split()) > 4, probe["max_tokens"]) == (True, 1)


@contextmanager
def request(engine: Engine, body: str = "{}") -> Iterator[socket.socket]:
    """Send a request and leave it open."""
    with socket.create_connection(("127.0.0.1", engine.port)) as client:
        client.sendall(
            f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        reading = threading.Thread(target=_drain, args=(client,), daemon=True)
        reading.start()
        yield client


def _drain(client: socket.socket) -> None:
    with suppress(OSError):
        while client.recv(4096):
            pass


# -- what works


def test_an_engine_that_makes_steps_is_asked_for_no_token(host: Host, engine: Engine) -> None:
    host.look()
    before = len(engine.keys)
    for _ in range(2):
        engine.steps += 1
        assert host.look()["state"] == "serving"
    assert len(engine.keys) == before


def test_an_idle_engine_is_asked_for_one_token_with_its_key(host: Host, engine: Engine) -> None:
    assert host.look()["state"] == "idle"
    assert engine.keys == [f"Bearer {KEY}"]


def test_a_stream_of_half_an_hour_on_batch_1_is_no_hang_though_the_counter_stands(host: Host, engine: Engine) -> None:
    with request(engine, '{"stream": true}'):
        time.sleep(1)
        engine.stuck.set()
        host.look()
        for _ in range(3):
            assert host.look_after(600)["state"] == "serving"
    assert host.events == []


def test_a_prefill_of_128k_is_no_hang(host: Host, engine: Engine) -> None:
    engine.stuck.set()
    with request(engine, "x" * 500_000):
        host.look()
        for step in range(1, 5):
            # A chunk of it brings no output: only the scheduler's figures move.
            engine.cache += step / 10
            host.pass_time(200)
            assert host.look()["state"] == "serving"


def test_a_first_request_that_compiles_is_no_hang(host: Host, engine: Engine, tmp_path: Path) -> None:
    engine.stuck.set()
    # Other processes of this machine are in the same control group.
    name = f"cicc-{os.getpid()}"
    shutil.copy("/bin/sleep", tmp_path / name)
    host.config["compilers"] = f"nvcc {name}"
    with request(engine), subprocess.Popen([str(tmp_path / name), "60"]) as compiler:
        host.look()
        assert host.look_after(800)["state"] == "busy"
        compiler.kill()
    assert host.events == []


def test_a_host_under_load_whose_connections_time_out_is_no_hang(host: Host) -> None:
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    port = full.getsockname()[1]
    (host.home / "current" / "health-url").write_text(f"http://127.0.0.1:{port}/health\n")
    clients = [socket.socket() for _ in range(3)]
    for client in clients:
        client.setblocking(False)
        client.connect_ex(("127.0.0.1", port))
    host.look()
    assert host.look_after(800)["state"] == "busy"
    for each in (*clients, full):
        each.close()


@pytest.mark.parametrize("name", ["sleep", "fresh", "drained", "paused", "trial"])
def test_no_sign(host: Host, engine: Engine, name: str) -> None:
    engine.stuck.set()
    if name == "sleep":
        engine.awake = 0
    if name == "fresh":
        uptime = float(Path("/proc/uptime").read_text().split()[0])
        host.unit = host.unit.replace("=1000000", f"={int(uptime * 1e6)}")
    if name in ("drained", "paused"):
        (host.folder / name).write_text(f"{10**9}\n")
    if name == "trial":
        (host.home / "trial").touch()
    host.look()
    assert host.look_after(200)["state"] == {"sleep": "idle", "fresh": "busy"}.get(name, "skipped")
    assert host.events == []


# -- what does not


def test_a_stuck_engine_without_clients_is_found_after_two_minutes(host: Host, engine: Engine) -> None:
    engine.stuck.set()
    assert host.look()["state"] == "stalled"
    assert host.look_after(60)["state"] == "stalled"
    noted = host.look_after(61)
    assert (noted["state"], noted["would"]) == ("hung", "restart")
    assert host.events == [("would-restart", "firing")]
    host.look_after(30)
    assert len(host.events) == 1, "once, not at each look"


def test_it_is_said_when_it_answers_again(host: Host, engine: Engine) -> None:
    engine.stuck.set()
    host.look()
    host.look_after(130)
    engine.stuck.clear()
    assert host.look_after(30)["would"] == ""
    assert host.events[-1] == ("would-restart", "resolved")


def test_a_stuck_request_on_batch_1_is_found_after_ten_minutes(host: Host, engine: Engine) -> None:
    engine.stuck.set()
    with request(engine):
        host.look()
        noted = host.look_after(400)
        assert (noted["state"], noted["open"]) == ("stalled", "1")
        assert host.look_after(250)["state"] == "hung"


@in_proof("an engine without clients has room above")
def test_room_comes_from_the_options(host: Host, engine: Engine) -> None:
    host.config["batch"] = "8"
    engine.stuck.set()
    with request(engine):
        host.look()
        assert host.look_after(130)["state"] == "hung"


def test_a_port_that_refuses_twice_is_dead(host: Host, engine: Engine) -> None:
    host.look()
    engine.shutdown()
    engine.server_close()
    assert host.look()["state"] == "stalled"
    assert host.look_after(30)["state"] == "dead"


@pytest.mark.parametrize(
    ("unit", "state"),
    [
        ("ActiveState=failed\nSubState=failed\nResult=exit-code\nRestart=always", "dead"),
        ("ActiveState=inactive\nSubState=dead\nExecMainStatus=0\nRestart=no", "dead"),
        ("ActiveState=inactive\nSubState=dead\nExecMainStatus=0\nRestart=always", "skipped"),
        ("ActiveState=activating\nSubState=auto-restart\nRestart=always", "loading"),
    ],
    ids=["failed", "exit 0", "stopped by hand", "loads"],
)
def test_a_unit_that_does_not_run(host: Host, unit: str, state: str) -> None:
    host.unit, host.container = unit, "''"
    assert host.look()["state"] == state


def test_503_for_longer_than_a_load_is_dead(host: Host, engine: Engine) -> None:
    engine.unavailable = True
    engine.stuck.set()
    host.config |= {"after": "5000", "full_after": "5000"}
    host.look()
    assert host.look_after(1600)["state"] == "stalled"
    assert host.look_after(250)["state"] == "dead"


def test_503_for_ever_is_dead_though_tokens_are_made(host: Host, engine: Engine) -> None:
    engine.unavailable = True
    for _ in range(2):
        host.look()
        assert host.look_after(850)["state"] != "dead"
    # Its own probe moves the counter between two looks.
    assert host.look_after(120)["state"] == "dead"
    assert host.look_after(30)["state"] == "dead"
    engine.unavailable = False
    assert host.look_after(30)["state"] in ("idle", "serving")


def test_without_a_counter_it_is_told_and_never_restarted(host: Host, engine: Engine) -> None:
    engine.uncounted = True
    engine.stuck.set()
    host.config["act"] = "restart"
    host.look()
    assert host.look_after(400)["state"] == "stalled"
    assert host.look_after(250)["state"] == "hung"
    assert (host.events, host.started) == ([("hang", "firing")], "")


@in_proof("the case above goes by idle GPUs")
def test_without_a_counter_busy_gpus_are_work(host: Host, engine: Engine) -> None:
    engine.uncounted = True
    engine.stuck.set()
    host.program("nvidia-smi", "echo 97")
    host.look()
    assert host.look_after(800)["state"] == "unmeasured"


def test_where_a_restart_is_asked_for_it_begins_at_once(host: Host, engine: Engine) -> None:
    engine.stuck.set()
    host.config["act"] = "restart"
    host.look()
    noted = host.look_after(130)
    assert (noted["state"], noted["would"]) == ("hung", "")
    assert host.started == "start --no-block rackwright-act@llm.service\n"
    assert host.events == [("hang", "firing")]


def test_no_key_reaches_another_process_at_the_port(host: Host, engine: Engine) -> None:
    host.look()
    host.look()
    before = len(engine.keys)
    host.container = "$(case $1 in " + str(os.getpid()) + ") echo other ;; esac)"
    engine.stuck.set()
    host.pass_time(30)
    assert host.look()["state"] in ("skipped", "unmeasured", "stalled")
    assert len(engine.keys) == before


@in_proof("each case here goes by what a look before has noted")
def test_looks_that_stopped_for_a_while_prove_nothing(host: Host, engine: Engine) -> None:
    engine.stuck.set()
    host.look()
    host.pass_time(1000, looks=False)
    assert host.look()["state"] == "stalled"


def test_damaged_numbers_of_what_is_watched_restart_nothing(host: Host, engine: Engine) -> None:
    engine.stuck.set()
    host.look()
    host.config |= {"after": "", "full_after": "x1", "load": "0120", "fresh": "9" * 30, "batch": "1\r"}
    assert host.look_after(60)["state"] == "stalled"


def test_damaged_notes_of_the_last_look_prove_nothing(host: Host, engine: Engine) -> None:
    engine.stuck.set()
    noted = host.look()
    texts = ("x", "08", "-5", "9" * 30, "1 2", "", "a\xffb", "9" * 10, "1;2")
    damaged = noted | dict(zip(AGED, texts, strict=True))
    (host.folder / "states" / "llm").write_text("".join(f"{key}={value}\n" for key, value in damaged.items()) + "\n=")
    again = host.look()
    assert again["state"] == "stalled"
    assert all(again[key] in ("", *noted.values()) or again[key].isdecimal() for key in AGED), again


def test_a_folder_in_place_of_its_note_goes(host: Host) -> None:
    (host.folder / "states" / "llm").mkdir(parents=True)
    (host.folder / "states" / "llm" / "x").touch()
    assert host.look()["state"] == "idle"


def test_what_is_no_longer_watched_leaves_no_state(host: Host) -> None:
    host.look()
    (host.folder / "states" / "old").write_text("state=idle\n")
    host.look()
    assert not (host.folder / "states" / "old").exists()


def test_ten_thousand_connections_are_counted_at_each_look(host: Host, engine: Engine) -> None:
    engine.stuck.set()
    clients = (f"10.0.{number >> 8}.{number & 255}:40000" for number in range(10_000))
    rows = "".join(
        f"0 0 127.0.0.1:1 {client} bytes_sent:9 bytes_received:9 lastsnd:60000 lastrcv:9\n" for client in clients
    )
    (host.folder / "rows").write_text(rows)
    host.program("ss", f"cat {host.folder}/rows")
    host.look()
    assert [host.look_after(30)["open"] for _ in range(2)] == ["10000", "10000"]


def test_metrics_without_an_end_are_cut(host: Host, engine: Engine) -> None:
    engine.endless = True
    assert host.look()["state"] in ("idle", "serving")
    assert engine.sent < 100 << 20


def test_what_was_sent_before_a_boot_or_a_deploy_is_resolved_once(host: Host, engine: Engine) -> None:
    host.has_sent("hang-llm", "sick-llm", "gpu-1")
    host.look()
    host.look()
    assert host.events == [("hang", "resolved"), ("sick", "resolved")]


def test_what_stays_sick_is_not_resolved(host: Host, engine: Engine) -> None:
    host.has_sent("sick-llm", "hang-llm")
    engine.stuck.set()
    host.look()
    assert host.events == []
