"""aiperf as a program that Rackwright begins: it has the endpoint's key, shows it nowhere, and ends with its parent.

`make test` has the stand-in of aiperf (tests/lab/aiperf_standin), `make proof` aiperf itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rackwright.masks import MASK
from rackwright_bench.aiperf.environment import ready_python
from rackwright_bench.aiperf.process import LOG, begun
from rackwright_bench.aiperf.results import read_results
from rackwright_bench.aiperf.tokenizer import in_cache
from rackwright_bench.aiperf.words import Target, profile_words, surroundings
from rackwright_bench.figures.figures import Drafting
from rackwright_bench.suites.loading import suite_of
from rackwright_bench.suites.suite import cells
from tests.lab.products import with_proof

ROOT = Path(__file__).parents[2]
KEY = "sk-test-5f0c1a7e93d24b68"
SUITE = """\
warmup: 1
datasets: {short: {kind: random, input: 16, output: 4}}
arrivals: {one: {concurrency: 2, requests: REQUESTS}}
"""
PARENT = """\
import json, os, sys, time
from pathlib import Path
from rackwright_bench.aiperf.process import begun
words, out = json.loads(sys.argv[1]), Path(sys.argv[2])
with begun(words, "", dict(os.environ), out) as process:
    print(process.pid, flush=True)
    time.sleep(600)
"""


@dataclass
class Endpoint:
    """Streams four tokens for each request, and remembers what it was asked with."""

    url: str = ""
    keys: list[str | None] = field(default_factory=list)
    refuses: bool = False
    statistics: dict[str, object] = field(default_factory=dict)
    """Of its drafts, in the last event, where vLLM has them (`per-request-spec-decode-metrics`)."""
    on_request: Callable[[], None] = lambda: None


def handler(endpoint: Endpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            endpoint.keys.append(self.headers["Authorization"])
            endpoint.on_request()
            self.send_response(401 if endpoint.refuses else 200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            if endpoint.refuses:
                self.wfile.write(f'{{"error": "wrong key: {self.headers["Authorization"]}"}}'.encode())
                return
            head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
            for number in range(4):
                delta = {"index": 0, "delta": {"content": f" w{number}"}, "finish_reason": None}
                self.wfile.write(f"data: {json.dumps({**head, 'choices': [delta]})}\n\n".encode())
                time.sleep(0.01)
            usage = {"prompt_tokens": 16, "completion_tokens": 4, "total_tokens": 20}
            more = {"metrics": {"speculative_decoding": endpoint.statistics}} if endpoint.statistics else {}
            self.wfile.write(f"data: {json.dumps({**head, 'choices': [], 'usage': usage, **more})}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    found = Endpoint()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(found))
    found.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield found
    server.shutdown()


def standin(folder: Path) -> Path:
    """Return a Python that has the stand-in for aiperf."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT}/tests/lab/aiperf_standin exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return path


TOOLS: dict[str, Callable[[Path], Path]] = {"its stand-in": standin, "aiperf itself": lambda _: ready_python(print)}


@pytest.fixture(params=with_proof(TOOLS, {"its stand-in"}, "1.2 GB of packages; its stand-in is begun the same way"))
def python(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return TOOLS[request.param](tmp_path)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def words(python: Path, endpoint: Endpoint, out: Path, requests: int) -> list[str]:
    suite = suite_of(SUITE.replace("REQUESTS", str(requests)), "suite.yml")
    (cell,) = cells(suite)
    prompts = out.with_name("prompts.jsonl")
    prompts.write_text("".join(f'{{"text": "word {n}", "output_length": 4}}\n' for n in range(requests + 1)))
    target = Target(endpoint.url, "m", in_cache(tokenizer(out.with_name("tokenizer")), cache(out)))
    return profile_words(python, target, suite, cell, prompts, out)


def tokenizer(folder: Path) -> Path:
    """Make a folder with the files of a tokenizer of one word."""
    folder.mkdir()
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0, "word": 1}, "unk_token": "[UNK]"}
    parts = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    made: dict[str, object] = {
        "version": "1.0",
        **parts,
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": model,
    }
    (folder / "tokenizer.json").write_text(json.dumps(made))
    named = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(named))
    return folder


def cache(out: Path) -> Path:
    return out.with_name("vocabularies")


def environment(out: Path) -> dict[str, str]:
    return surroundings(os.environ, cache(out))


def shown_by(group: int) -> bytes:
    """Command lines and environments of all processes of a session, as /proc has them."""
    found = b""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(path.name)) == group:
                found += (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
        except OSError:
            continue
    return found


def test_the_key_is_sent_with_each_request_and_shown_nowhere(python: Path, endpoint: Endpoint, out: Path) -> None:
    requests = list[bytes]()
    with begun(words(python, endpoint, out, 6), KEY, environment(out), out) as process:
        endpoint.on_request = lambda: requests.append(shown_by(process.pid))
        assert process.wait(120) == 0, (out / LOG).read_text()
    assert read_results(out).failed == 0
    assert endpoint.keys == [f"Bearer {KEY}"] * 7
    assert any(requests)
    assert not any(KEY.encode() in one for one in requests)
    assert not [path for path in out.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def test_the_statistics_of_drafts_in_answers_are_read(python: Path, endpoint: Endpoint, out: Path) -> None:
    endpoint.statistics = {
        "acceptance_histogram": [1, 0, 1],
        "num_spec_steps": 2,
        "num_spec_tokens": 2,
        "num_accepted_draft_tokens": 2,
        "num_draft_tokens": 4,
        "mean_acceptance_length": 2.0,
        "draft_acceptance_rate": 0.5,
    }
    with begun(words(python, endpoint, out, 6), "", environment(out), out) as process:
        assert process.wait(120) == 0, (out / LOG).read_text()
    assert read_results(out).drafting == Drafting(2.0, 0.5, (0.5, 0.5))


def test_a_key_that_the_engine_repeats_is_masked(python: Path, endpoint: Endpoint, out: Path) -> None:
    endpoint.refuses = True
    with begun(words(python, endpoint, out, 2), KEY, environment(out), out) as process:
        process.wait(120)
    found = read_results(out)
    assert (found.failed, "401" in found.errors[0], KEY in str(found)) == (2, True, False)
    assert not [path for path in out.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert MASK in "".join(path.read_text() for path in out.rglob("*.jsonl"))


def test_without_a_key_none_is_sent(python: Path, endpoint: Endpoint, out: Path) -> None:
    with begun(words(python, endpoint, out, 2), "", environment(out), out) as process:
        assert process.wait(120) == 0, (out / LOG).read_text()
    assert {*endpoint.keys} == {None}


def members(group: int) -> list[str]:
    found = subprocess.run(
        ["ps", "-o", "pid=,stat=,args=", "-s", str(group)], capture_output=True, text=True, check=False
    )
    return [row for row in found.stdout.splitlines() if row.split()[1][0] != "Z"]


def test_it_ends_when_whoever_began_it_is_killed(python: Path, endpoint: Endpoint, out: Path) -> None:
    begun_words = [sys.executable, "-c", PARENT, json.dumps(words(python, endpoint, out, 5000)), str(out)]
    with subprocess.Popen(begun_words, env=environment(out), cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        group = int(parent.stdout.readline())
        assert waits(lambda: len(endpoint.keys) > 5, 60), (out / LOG).read_text()
        parent.send_signal(signal.SIGKILL)
    assert waits(lambda: not members(group), 5), members(group)
    sent = len(endpoint.keys)
    time.sleep(1)
    assert len(endpoint.keys) == sent


def waits(over: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not over() and time.monotonic() < until:
        time.sleep(0.1)
    return over()
