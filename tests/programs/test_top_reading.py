"""The reading of `rackwright top` on a host: the real script and curl; the engines are the test's."""

from __future__ import annotations

import base64
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rackwright.hostside import host_script
from rackwright_engines.load_counters import COUNTERS

SHELL = shutil.which("dash") or "sh"
METRICS = """\
# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a b"} 3.0
vllm:num_requests_running{engine="1",model_name="a b"} 1.0
vllm:num_requests_running_total 99.0
vllm:num_requests_waiting{engine="0"} 2.0
vllm:generation_tokens_total{engine="0"} 1.25e+06
"""


class Engine(BaseHTTPRequestHandler):
    """Answers /health and /metrics, and remembers what it was requested."""

    requested: list[tuple[str, str]]

    def do_GET(self) -> None:
        """Answer."""
        self.requested.append((self.path, self.headers.get("Authorization", "")))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(METRICS.encode() if self.path == "/metrics" else b"")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def engine() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    requested: list[tuple[str, str]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Engine,), {"requested": requested}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", requested
    server.shutdown()


def read(root: Path, endpoints: str, requests: str = "look\n") -> list[str]:
    """Return what the script prints for these requests, with all folders below one."""
    names = ("marks", "states", "acts", "paused", "drained", "lease", "jobs")
    paths = {name: str(root / name) for name in names}
    status = "cat >/dev/null; printf 'uptime 1\\nend\\n'; exit 0"  # as a program of the host may, it reads what it gets
    script = host_script("top_read", once="", status=status, endpoints=endpoints, **paths)
    done = subprocess.run([SHELL, "-c", script], input=requests, text=True, capture_output=True, timeout=30, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


def row(base: str, metrics: str = "/metrics") -> str:
    names = COUNTERS["vllm"]
    url = f"{base}{metrics}" if metrics else "-"
    return f"llm {base}/health {url} {names.tokens} {names.running} {names.waiting}"


def test_an_engines_counters_are_summed_over_its_labels(
    engine: tuple[str, list[tuple[str, str]]], tmp_path: Path
) -> None:
    lines = read(tmp_path, row(engine[0]))
    assert lines[-1] == "over"
    assert {"engine llm code 200", "engine llm tokens 1250000.000", "engine llm running 4.000"} <= set(lines)
    assert "engine llm waiting 2.000" in lines
    assert engine[1] == [("/health", ""), ("/metrics", "")]


def test_an_engine_without_such_metrics_is_asked_for_its_health_alone(
    engine: tuple[str, list[tuple[str, str]]], tmp_path: Path
) -> None:
    assert "engine llm code 200" in read(tmp_path, row(engine[0], ""))
    assert [path for path, _ in engine[1]] == ["/health"]


def test_status_comes_first_where_it_is_asked_for_and_the_shell_stays(tmp_path: Path) -> None:
    lines = read(tmp_path, row("http://127.0.0.1:1"), "look\nstatus\nlook\n")
    assert [text for text in lines if text in ("over", "end")] == ["over", "end", "over", "over"]
    assert lines.count("engine llm code 000") == 3


def test_files_are_printed_bounded_and_of_a_history_its_last_row(tmp_path: Path) -> None:
    texts = {
        "marks/sick-llm": "word=down\nreason=x y\n",
        "states/llm": "state=hung\n" + "signs=" + "s" * 900 + "\n",
        "states/llm.connections": "not for us\n",
        "states/big": "line\n" * 5000,
        "acts/acts-llm": "1 restart ok\n2 sick gone\n",
        "paused": "4000\nwho=ops\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "marks" / "folder").mkdir()
    lines = [text.removeprefix(f"file {tmp_path}/") for text in read(tmp_path, "")]
    assert {"marks/sick-llm reason=x y", "acts/acts-llm 2 sick gone", "paused 4000"} <= set(lines)
    assert lines.count("states/big line") == 30
    assert max(map(len, lines)) < 600
    assert not any("not for us" in text for text in lines)


def test_only_jobs_that_run_are_printed_with_their_last_progress(tmp_path: Path) -> None:
    encoded = base64.b64encode(b"draining: requests open: 2").decode()
    for name, files in {"switch-llm": {}, "model-x": {"status": "0\n"}, "pull-y": {"ended": "timeout 5\n"}}.items():
        job = tmp_path / "jobs" / name
        job.mkdir(parents=True)
        events = f"n 0 progress {base64.b64encode(b'old').decode()}\nn 9 progress {encoded}\nn 9 row e30=\n"
        for file, text in {"began": "12.5\n", "events": events, **files}.items():
            (job / file).write_text(text)
    assert [text for text in read(tmp_path, "") if text.startswith("job")] == [f"job switch-llm 12.5 {encoded}"]
