"""Rows of the proof carry the endpoint's key without showing it, see that it is asked for, and count threads."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.endpoint.binding import Binding, key_digest
from rackwright.concerns.endpoint.proof.chat import asks_for_key, model_name
from rackwright.concerns.endpoint.proof.container_rows import threads
from rackwright.concerns.endpoint.proof.drafts import drafts_accepted
from rackwright.concerns.endpoint.proof.engine_steps import engine_steps
from rackwright.concerns.endpoint.proof.proof_row import Answer, Question, judge_safely, login_script, parse_answer
from rackwright.concerns.endpoint.questions import questions, questions_after, questions_before, tried_of
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.rollout.run_hosts import bake_rows
from tests.unit.test_api_key import KEY, OTHER, put_key, release, settings


class Keyed(BaseHTTPRequestHandler):
    """Answers /v1/models, and anything else with 200, to who sends the key; 401 to all others."""

    key: str | None = KEY.unmask()
    refused: list[str]

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer()

    def _answer(self) -> None:
        well = self.key is None or self.headers.get("Authorization") == f"Bearer {self.key}"
        if not well:
            self.refused.append(self.path)
        body = b'{"data": [{"id": "m"}]}'
        self.send_response(200 if well else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    Keyed.refused, Keyed.key = [], KEY.unmask()
    found = ThreadingHTTPServer(("127.0.0.1", 0), Keyed)
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield found
    found.shutdown()
    found.server_close()


def url(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def ran(row: Question) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", row.script], input=row.stdin or "", capture_output=True, text=True, check=False)


def with_login(home: str, row: Question) -> Question:
    """Return a row as hosts ask it, but without the check of the listener (test_listener.py)."""
    return replace(row, script=login_script(home) + row.script)


def bound(home: Path, *keys: Any) -> Path:
    """Make an endpoint's folder whose binding names the first of these keys."""
    for key in keys:
        put_key(home, key)
    (home / "binding").write_text(Binding(("GPU-1",), key_digest(keys[0])).text)
    return home


def test_a_row_carries_the_key_that_the_binding_names(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    row = model_name(url(server), "m")
    for home, status in ((bound(tmp_path / "a", KEY, OTHER), 200), (bound(tmp_path / "b", OTHER, KEY), 401)):
        answer = parse_answer(ran(with_login(str(home), row)).stdout.split("\n"))
        assert answer.status == status
    assert parse_answer(ran(with_login(str(tmp_path / "none"), row)).stdout.split("\n")).status == 401


def test_a_row_shows_the_key_to_nobody(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    home = bound(tmp_path, KEY)
    row = with_login(str(home), model_name(url(server), "m"))
    traced = subprocess.run(["sh", "-xc", row.script], capture_output=True, text=True, check=True)
    assert "curl" in traced.stderr
    assert KEY.unmask() not in traced.stderr + row.script


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_every_request_of_the_longer_rows_carries_it(server: ThreadingHTTPServer, tmp_path: Path, kind: str) -> None:
    home = str(bound(tmp_path, KEY))
    for row in (engine_steps(url(server), "m", kind), drafts_accepted(url(server), "m", kind, "eagle3")):
        ran(with_login(home, row))
        assert Keyed.refused == []
        ran(row)
        assert Keyed.refused, "without it the same requests are refused"
        Keyed.refused.clear()


def test_an_endpoint_that_lets_anybody_in_is_refused(server: ThreadingHTTPServer) -> None:
    row = asks_for_key(url(server))
    verdict = judge_safely(row, parse_answer(ran(row).stdout.split("\n")))
    assert (verdict.passed, verdict.text.endswith(" /v1/models answers 401")) == (True, True)
    Keyed.key = None
    verdict = judge_safely(row, parse_answer(ran(row).stdout.split("\n")))
    assert not verdict.passed
    assert "answers 200, expected 401: " in verdict.text


# -- which rows carry it: those of a release that asks for one, whichever is asked


def with_key(rows: Any) -> list[str]:
    return [row.name for row in rows if "rackwright_login=/" in row.script]


def test_all_rows_of_a_keyed_release_carry_it() -> None:
    endpoint = settings(gate={"level": "full"})
    made, binding = release(endpoint), Binding(("GPU-1",), key_digest(KEY))
    names = [row.name for row in questions(made, binding, endpoint)]
    assert "its key is asked for" in names
    assert with_key(questions(made, binding, endpoint)) == ["the model's name", "a chat answer"]
    after = questions_after(made, endpoint)
    assert with_key(after) == [row.name for row in after if "curl" in row.script]
    assert {"speed", "streaming", "no repeated token"} <= set(with_key(after))
    assert with_key(tried_of("llm", made.hash, made.facts, binding).questions) == ["the model's name", "a chat answer"]
    assert with_key(bake_rows("llm", made.hash, made.facts, endpoint)) == ["engine steps"]
    serving = SeenEndpoint(active="active", health=200, spec=made.facts)
    assert with_key(questions_before(settings(key=None, gate={"level": "full"}), serving))


def test_without_a_key_no_row_speaks_of_one() -> None:
    endpoint = settings(key=None, gate={"level": "full"})
    made, binding = release(endpoint), Binding(("GPU-1",))
    rows = (
        *questions(made, binding, endpoint),
        *questions_after(made, endpoint),
        *bake_rows("llm", "x", made.facts, endpoint),
    )
    assert with_key(rows) == []
    assert "its key is asked for" not in [row.name for row in rows]


# -- threads


def counted(tmp_path: Path, files: dict[str, str], limit: int = 32768) -> Any:
    """Return the row's verdict on a host whose control group has these files."""
    group = tmp_path / "sys" / "fs" / "cgroup" / "docker"
    group.mkdir(parents=True)
    for name, text in files.items():
        (group / name).write_text(text)
    (tmp_path / "proc" / "7").mkdir(parents=True)
    (tmp_path / "proc" / "7" / "cgroup").write_text("0::/docker\n")
    (tmp_path / "docker").write_text("#!/bin/sh\necho 7\n")
    (tmp_path / "docker").chmod(0o755)
    row = threads("rackwright-llm", limit)
    script = row.script.replace("/sys/", f"{tmp_path}/sys/").replace("/proc/", f"{tmp_path}/proc/")
    done = subprocess.run(
        ["sh", "-c", script], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    return judge_safely(replace(row, script=script), parse_answer(done.stdout.split("\n")))


@pytest.mark.parametrize(
    ("files", "passed", "observed"),
    [
        ({"pids.max": "32768", "pids.peak": "812", "pids.current": "700"}, True, "812 at most of 32768"),
        ({"pids.max": "32768", "pids.current": "700"}, True, "700 at most of 32768"),
        ({"pids.max": "32768", "pids.peak": "30000"}, False, "30000 at most of 32768; raise container.pids_limit"),
        (
            {"pids.max": "32768", "pids.peak": "900", "pids.events": "max 3\n"},
            False,
            "900 at most of 32768, and 3 were refused; raise container.pids_limit",
        ),
    ],
)
def test_the_peak_of_threads_is_told_against_the_limit(
    tmp_path: Path, files: dict[str, str], passed: bool, observed: str
) -> None:
    verdict = counted(tmp_path, files)
    assert (verdict.passed, verdict.measured, verdict.text) == (passed, True, observed)


def test_a_host_without_such_a_group_is_not_measured(tmp_path: Path) -> None:
    verdict = counted(tmp_path, {})
    assert not verdict.measured
    assert not judge_safely(threads("x", 10), Answer(0, "", 0)).measured


# -- how long the first answer may take


@pytest.mark.parametrize(("kind", "seconds"), [("vllm", 110), ("sglang", 300)])
def test_an_engine_that_compiles_at_its_first_request_is_given_the_time(kind: str, seconds: int) -> None:
    endpoint = settings(kind, key=None)
    made, binding = release(endpoint), Binding(("GPU-1",))
    for rows in (questions(made, binding, endpoint), tried_of("llm", made.hash, made.facts, binding).questions):
        (chat,) = [row for row in rows if row.name == "a chat answer"]
        assert f"--max-time {seconds} " in chat.script
        assert chat.timeout > seconds
