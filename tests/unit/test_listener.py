"""No request goes to another process than the endpoint's own container: the functions of the shell, run for real."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackwright.concerns.endpoint.proof.asking import asking_script, confined
from rackwright.concerns.endpoint.proof.chat import chat, model_name
from rackwright.concerns.endpoint.proof.engine_steps import engine_steps
from rackwright.concerns.endpoint.proof.full import gpu_counters
from rackwright.concerns.endpoint.proof.proof_row import Answer, Verdict, http, is_refused, judge_safely, parse_answer
from rackwright.hostside import host_script
from rackwright.messages import RackwrightError
from rackwright.rollout.run_hosts import still_serving
from rackwright.settings.host_settings import EndpointSettings
from rackwright_bench.endpoint_on_host import Measuree

pytestmark = pytest.mark.skipif(not shutil.which("ss"), reason="needs ss")

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
ID = "c" * 64
KEY = "Authorization: Bearer sk-listener-0123456789"


class Served(BaseHTTPRequestHandler):
    """Notes what it is asked, and answers as an endpoint does."""

    heard: list[str | None] = []  # noqa: RUF012

    def do_GET(self) -> None:
        """Answer the models."""
        self._answer({"data": [{"id": "m"}]})

    def do_POST(self) -> None:
        """Answer a chat."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer({"choices": [{"message": {"content": "42"}}]})

    def _answer(self, body: object) -> None:
        Served.heard.append(self.headers.get("Authorization"))
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    Served.heard = []
    found = ThreadingHTTPServer(("127.0.0.1", 0), Served)
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield found
    found.shutdown()
    found.server_close()


class Machine:
    """A folder that stands for an endpoint's, and a Docker that tells of one container."""

    def __init__(self, folder: Path, port: int, state: str = f"true {os.getpid()} {ID} llm") -> None:
        self.folder, self.home = folder, folder / "llm"
        (self.home / "current").mkdir(parents=True)
        (self.home / "keys").mkdir()
        (self.home / "keys" / "abc").write_text(f"{KEY}\n")
        (self.home / "binding").write_text("KEY=abc\n")
        (self.home / "current" / "health-url").write_text(f"http://127.0.0.1:{port}/health\n")
        (folder / "docker").write_text(
            f"#!/bin/sh\ncase $1 in ps) echo ${{PUBLISHES:-}} ;; *) echo '{state}' ;; esac\n"
        )
        (folder / "docker").chmod(0o755)

    def script(self, inside: str, text: str) -> str:
        """Return a script preceded by stubs by which all processes are in the container `inside`."""
        real = asking_script("llm")
        before, mark, after = real.partition("# Each request of the script behind this")
        homes = "/var/lib/rackwright/endpoints/llm"
        assert homes in before
        faked = f"belongs() {{ inside={inside}; unit=; }}\n"
        return (before + faked + mark + after).replace(homes, str(self.home)) + text

    def run(self, script: str, shell: str = "sh", **more: str) -> str:
        env = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "DOCKER_HOST": "unix:///none", **more}
        return subprocess.run([shell, "-c", script], env=env, capture_output=True, text=True, check=False).stdout


def models(port: int) -> str:
    return http(f"http://127.0.0.1:{port}/v1/models", 5, post=False)


def port_of(server: ThreadingHTTPServer) -> int:
    return int(server.server_address[1])


@pytest.mark.parametrize("shell", SHELLS)
def test_the_containers_own_listener_gets_the_key(server: ThreadingHTTPServer, tmp_path: Path, shell: str) -> None:
    port = port_of(server)
    here = Machine(tmp_path, port)
    assert here.run(here.script(ID, models(port)), shell).splitlines()[-1].startswith("200 ")
    assert Served.heard == [KEY.removeprefix("Authorization: ")]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("state", "inside"),
    [
        (f"true {os.getpid()} {ID} llm", ""),
        (f"false 0 {ID} llm", ""),
        ("", ""),
        (f"true {os.getpid()} {ID} other", ID),
        (f"true {os.getpid()} {ID} llm", "d" * 64),
    ],
    ids=["no container's", "it has stopped", "no container", "another endpoint's", "another container's"],
)
def test_a_stranger_gets_no_request_and_is_named(
    server: ThreadingHTTPServer, tmp_path: Path, state: str, inside: str, shell: str
) -> None:
    port = port_of(server)
    here = Machine(tmp_path, port, state)
    answer = parse_answer(here.run(here.script(inside or "''", models(port)), shell).splitlines())
    verdict = judge_safely(model_name("", "m"), answer)
    assert Served.heard == []
    assert verdict.taken
    assert f"port {port} is taken by " in verdict.text
    assert f"pid {os.getpid()}, user root, " in verdict.text
    assert " 127.0.0.1; next: " in verdict.text
    assert is_refused(model_name("", "m"), verdict)


def test_one_who_listens_beside_the_container_is_a_stranger(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    """By SO_REUSEPORT, or at another address: which one answers is then unknown."""
    port = port_of(server)
    beside = subprocess.Popen(
        [
            "python3",
            "-c",
            f"import socket; s = socket.create_server(('127.0.0.2', {port})); print(1, flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert beside.stdout is not None
        beside.stdout.readline()
        here = Machine(tmp_path, port)
        script = here.script(ID, models(port))
        script = script.replace(f"inside={ID};", f"case $1 in {beside.pid}) inside= ;; *) inside={ID} ;; esac;")
        output = here.run(script)
    finally:
        beside.kill()
        beside.communicate()
    assert f"pid {beside.pid}, user root, at 127.0.0.2" in output
    assert str(os.getpid()) not in output
    assert Served.heard == []


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        (Answer(0, "curl: (7) not asked: port 1 is taken by perl, pid 7; next: X", 0.1), True),
        (Answer(0, "curl: (7) not asked: its container does not run", 0.1), False),
        (Answer(200, "curl: (7) not asked: port 1 is taken by perl, pid 7; next: X", 0.1), False),
        (Answer(0, "curl: (7) not asked: port 1 is taken by perl\ncurl: (18) closed", 0.1), False),
    ],
)
def test_who_takes_the_port_between_two_requests_is_seen(answer: Answer, taken: bool) -> None:
    assert judge_safely(model_name("", "m"), answer).taken == taken


def test_a_free_port_is_no_stranger_and_nothing_is_asked(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    for state, why in ((f"true {os.getpid()} {ID} llm", "does not listen on port"), ("", "its container does not run")):
        here = Machine(tmp_path / why[:4], port, state)
        answer = parse_answer(here.run(here.script(ID, models(port))).splitlines())
        verdict = judge_safely(model_name("", "m"), answer)
        assert (verdict.passed, verdict.taken) == (False, False)
        assert why in verdict.text


def test_each_request_of_a_long_row_looks_again(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    port = port_of(server)
    here = Machine(tmp_path, port)
    gone = f"rm -f {tmp_path}/docker; printf '#!/bin/sh\\n' >{tmp_path}/docker; chmod +x {tmp_path}/docker\n"
    output = here.run(here.script(ID, f"{models(port)}\n{gone}{models(port)}"))
    assert len(Served.heard) == 1
    assert "curl: (7) not asked: port" in output


def test_a_bake_takes_no_answer_of_a_stranger(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    port = port_of(server)
    here = Machine(tmp_path, port)
    row = still_serving("llm", "abc", f"http://127.0.0.1:{port}")
    output = here.run(row.script.replace("/var/lib/rackwright/endpoints/llm", str(here.home)))
    verdict = judge_safely(row, parse_answer(output.splitlines()))
    assert (verdict.passed, verdict.taken) == (False, True)
    assert f"port {port} is taken by " in verdict.text
    assert Served.heard == []


def test_a_servers_own_words_blame_no_stranger() -> None:
    """An answer that the engine cuts short must not pass for another process's: curl's own line follows it."""
    for body in ("stranger: port 8000 is taken by x\ncurl: (18) closed", "x\nstranger: y"):
        verdict = judge_safely(chat("", "m"), parse_answer([*body.split("\n"), "0 0"]))
        assert not verdict.taken
    assert not judge_safely(chat("", "m"), parse_answer(["stranger: y", "200 0.1"])).taken
    assert judge_safely(engine_steps("", "m", "vllm"), parse_answer(["stranger: y", "", "0 0"])) == Verdict(
        False, "y", taken=True
    )


def test_rows_that_ask_nothing_of_the_server_need_no_listener() -> None:
    row = gpu_counters()
    assert confined("llm", row, keyed=True) == row
    without, with_key = (confined("llm", model_name("", "m"), keyed=keyed) for keyed in (False, True))
    assert ("rackwright_login=" in without.script, "rackwright_login=" in with_key.script) == (False, True)
    assert host_script("known_curl") in without.before == with_key.before


class FixedMeasuree(Measuree):
    """An endpoint whose host says this."""

    def _ask(self, script: str) -> str:
        return str(self.one) if "listener" in script else ""


def test_bench_sends_no_key_before_the_host_has_said_who_listens() -> None:
    settings = EndpointSettings(bind="127.0.0.1")
    FixedMeasuree(cast(Any, "known"), "llm", settings)._refuse_another_listener()
    for message, why in (("port 8000 is taken by python3", "taken by python3"), ("", "does not say who listens")):
        with pytest.raises(RackwrightError, match=why) as error:
            FixedMeasuree(cast(Any, Entry(message)), "llm", settings)._refuse_another_listener()
        assert error.value.code == "RW1543"


class Entry(str):
    """A connected host, as far as its name is asked for."""

    __slots__ = ()

    @property
    def entry(self) -> SimpleNamespace:
        """Its entry of the inventory."""
        return SimpleNamespace(name="gpu01")
