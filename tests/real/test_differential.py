"""The stand-in of vLLM beside a real one: the same requests get the same status, shape and refusal."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest

from rackwright_lab.lab import Lab
from rackwright_lab.machine.paths import cache_root
from rackwright_lab.machine.progress import Progress
from rackwright_lab.real.vllm import ensure
from rackwright_lab.standins.hub_content import Store
from tests.lab.conftest import BIN, Site
from tests.programs.standin_process import Bench
from tests.real import moved
from tests.real.asking import MODEL, REQUESTS, answers_of, differences, metrics
from tests.real.chosen import BUILD

pytestmark = pytest.mark.lab

KNOWN = {
    "a stop word": "stop_reason names no word",
    "log probabilities": "the stand-in has no probabilities",
    "a tool call that streams": "the pieces of a call differ",
    **moved.REQUESTS.get(BUILD.version, {}),
}
"""What the stand-in still does otherwise, and why a deploy never meets it: the gate asks for none of it."""


@pytest.fixture(scope="module")
def real(worker_lab: Lab) -> str:
    """Return the base URL of the real one, on the lived-in host."""
    host = worker_lab.hosts[-1]
    run = Site(worker_lab).command(BIN / "pyinfra", "inventory/lab_vllm.py", "deploy.py", "--limit", host.name, "-y")
    assert run.status == 0, run.output
    return f"http://{host.address}:8000"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the base URL of the stand-in, over the same model's files, with the same options."""
    folder = tmp_path_factory.mktemp("standin")
    bench = Bench(folder, "vllm", Store(folder / "hub"), folder)
    words = [f"--{key}" if value is True else f"--{key}={value}" for key, value in BUILD.engine.items()]
    model = ensure(BUILD, cache_root(), Progress(quiet=True)) / "models" / "good"
    running = bench.start(model, "--served-model-name", MODEL, *words)
    running.wait_ready()
    yield f"http://127.0.0.1:{running.port}"
    bench.end_all()


@pytest.mark.parametrize("name", REQUESTS)
def test_both_answer_alike(real: str, ours: str, name: str) -> None:
    known_differences = moved.ANSWERS.get(BUILD.version, set())
    both = differences(answers_of(real, REQUESTS[name]), answers_of(ours, REQUESTS[name]))
    found = [row for row in both if row not in known_differences]
    assert bool(found) is (name in KNOWN), "\n".join(found) or f"{name} no longer differs"


def test_the_standin_makes_up_no_metric(real: str, ours: str) -> None:
    theirs, emulated = (urllib.request.urlopen(f"{base}/metrics").read().decode() for base in (real, ours))
    assert metrics(emulated) <= metrics(theirs)
