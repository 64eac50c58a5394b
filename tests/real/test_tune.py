"""A tune and a comparison of draft lengths with a real vLLM, a trained EAGLE3 draft and aiperf itself, on one host.

On a CPU no speed is measured; what is looked at is that every trial has figures, that the engine's counters are those
of its drafts, that the time is kept, that what is proven is kept and offered, and that what served serves again.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from rackwright.profiles.presets import load_presets
from rackwright_bench.record import read_bench
from rackwright_lab.hosts.host import Host
from tests import texts
from tests.lab.conftest import BIN, ROOT, Run, Site
from tests.lab.fleets import proven, running
from tests.real.test_vllm import PATIENCE, ask, on_builds_that_draft

pytestmark = [pytest.mark.lab, on_builds_that_draft]

INVENTORY = "inventory/lab_eagle3.py"
LEARNED = (
    "Describe the sea in five sentences.",
    "Count from one to ten in words.",
    "Tell a short story about a lighthouse.",
)
"""Questions whose answers the model was taught: of random words it often answers with nothing but the end."""
SUITE = """\
warmup: 2
datasets: {talk: {kind: spec_bench, output: 40, path: questions.jsonl}}
arrivals: {one: {concurrency: 1, requests: 6}}
"""
SECONDS = 300
"""They hold the staging, for which the image is asked twice, and what serves; 50 rounds take ten times as long."""
LOAD = 300
"""Seconds of a load that is not cut, on a busy machine."""


@pytest.fixture
def host(site: Site) -> Host:
    return site.lab.hosts[-1]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "questions.jsonl").write_text("".join(f"{json.dumps({'turns': [text]})}\n" for text in LEARNED))
    (tmp_path / "suite.yml").write_text(SUITE)
    return tmp_path / "suite.yml"


def bench(site: Site, host: Host, suite: Path, *words: str) -> Run:
    lock = ROOT / "rackwright.bench.lock.yml"
    assert not lock.exists(), "this test writes it, and takes it away again"
    try:
        # The lab's other host serves where another file of this run has deployed it, and else does not.
        fixed = ("bench", INVENTORY, "-y", "--anyway", "--limit", host.name, "--suite", str(suite))
        return site.rackwright(*fixed, *words, timeout=PATIENCE)
    finally:
        lock.unlink(missing_ok=True)


def test_a_comparison_keeps_what_it_proves_and_advise_offers_it(site: Site, host: Host, suite: Path) -> None:
    words = (INVENTORY, "deploy.py", "-y", "--limit", host.name)
    deployed = site.command(BIN / "pyinfra", *words, timeout=PATIENCE)
    assert deployed.status == 0, deployed.output
    before = proven([host])
    run = bench(site, host, suite, "--compare", "eagle3,baseline", "--rounds", "3")
    assert run.status == 0, run.output
    assert proven([host]) == running([host]) == before
    measured = read_bench(site.lab.paths.root, "last")
    assert (measured.cells["eagle3:talk.one"].drafting.tokens_a_step or 0) > 2
    assert measured.cells["baseline:talk.one"].drafting.tokens_a_step is None
    preset_line = re.search(texts.KEPT_PRESET.format(name=r"(\S+)"), run.output)
    assert preset_line or texts.NOTHING_KEPT in run.output
    if preset_line:
        preset = load_presets(ROOT / f"rackwright.presets.{site.lab.paths.id}.yml")[preset_line[1]]
        assert (preset.engine, preset.version, preset.rounds) == ("vllm", "0.32.0", 3)
        assert preset.driver
        advice = site.rackwright(
            "advise", "-i", INVENTORY, "--limit", host.name, "--context", "32", "--concurrency", "1"
        )
        assert preset_line[1] in advice.output
        assert "not the same here" not in advice.output


def test_a_tune_ends_with_its_time_and_what_served_serves(site: Site, host: Host, suite: Path) -> None:
    before, began = proven([host]), time.monotonic()
    run = bench(site, host, suite, "--tune", "draft_1,draft_2", "--rounds", "50", "--timeout", str(SECONDS))
    assert run.status == 0, run.output
    assert texts.TUNE_TIME_OVER.format(seconds=SECONDS) in run.output
    assert time.monotonic() - began < SECONDS + 2 * LOAD
    assert proven([host]) == running([host]) == before
    assert ask(host) == "42"
