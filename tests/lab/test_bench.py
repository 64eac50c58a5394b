"""`rackwright bench` on a host that serves a stand-in of vLLM, with requests that are really sent.

aiperf itself is 1.2 GB, so `make test` has a stand-in of it in its place: the same command line, as strict, and the
two files that Rackwright reads (tests/lab/aiperf_standin). `make proof` runs aiperf itself, and holds the stand-in
against it.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.lease import LEASE
from rackwright.fleet.bench.aiperf.environment import READY, environment_folder
from rackwright.fleet.bench.record import Bench as Measured
from rackwright.fleet.bench.record import read_bench
from rackwright.runs.journal import records
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests.lab.calm import needs_preparing
from tests.lab.conftest import BIN, ROOT, Run, Site
from tests.lab.products import in_proof, with_proof
from tests.lab.running import Running
from tests.lab.test_profiles import INVENTORY

pytestmark = pytest.mark.lab

PROFILE = "rtx_pro_6000_vllm_eagle3"
DRAFTS = {"model": "/config/models/eagle3", "num_speculative_tokens": 2, "method": "eagle3"}
KEY = "sk-lab-0d94c6f2b71e4a58"
SETTINGS = {
    "api_key": KEY,
    "gpus": [0],
    "bind": "0.0.0.0",
    "engine": {"speculative-config": json.dumps({**DRAFTS, "draft_tensor_parallel_size": 1})},
    "gate": {"commit_deadline": 30},
}
SHORT = """\
warmup: 2
datasets:
  short: {kind: random, input: 64, output: 64}
arrivals:
  one: {concurrency: 1, requests: 10}
  four: {concurrency: 4, requests: 20}
"""
EXACT = {"fault": "accepts", "value": [2, 1, 1, 0], "when": {"drafting": True}}
"""75 % at the first position, 25 % at the second, two tokens a step: exactly, since 64 tokens are eight times 8."""


@dataclass(frozen=True)
class Desk:
    """One host that serves, and the machine that measures it."""

    site: Site
    host: Host
    folder: Path
    """Of this test: suites and caches."""

    def bench(self, *words: str | Path, cache: Path | None = None) -> Run:
        """`rackwright bench INVENTORY`, with the stand-in of aiperf unless another cache is named."""
        at = cache or cache_with_standin(self.folder)
        return self.run(BIN / "rackwright", "bench", INVENTORY, "-y", *words, variables={"XDG_CACHE_HOME": str(at)})

    def run(self, *words: str | Path, variables: dict[str, str] | None = None) -> Run:
        return self.site.command("env", *self.variables(variables or {}), *words)

    def variables(self, more: dict[str, str]) -> list[str]:
        own = {"PROFILES_HOST": self.host.name, "PROFILES_PROFILE": PROFILE, "PROFILES_SETTINGS": json.dumps(SETTINGS)}
        return [f"{name}={value}" for name, value in {**own, **more}.items()]

    def suite(self, text: str = SHORT) -> Path:
        path = self.folder / "suite.yml"
        path.write_text(text)
        return path

    def measured(self) -> Measured:
        """The newest run."""
        return read_bench(self.site.lab.paths.root, "last")

    @contextmanager
    def faults(self, *rules: dict[str, Any]) -> Iterator[None]:
        self.host.set_engine_faults(*rules)
        try:
            yield
        finally:
            self.host.set_engine_faults()


def cache_with_standin(folder: Path) -> Path:
    """A user's cache in which the environment of aiperf holds the stand-in."""
    cache = folder / "cache"
    own = cache / "rackwright" / "bench" / environment_folder().name
    if not own.exists():
        (own / "bin").mkdir(parents=True)
        standin = ROOT / "tests" / "lab" / "aiperf_standin"
        (own / "bin" / "python").write_text(f'#!/bin/sh\nPYTHONPATH={standin} exec {sys.executable} "$@"\n')
        (own / "bin" / "python").chmod(0o755)
        (own / READY).touch()
    return cache


@pytest.fixture
def desk(request: pytest.FixtureRequest, worker_lab: Lab, site: Site, tmp_path: Path) -> Desk:
    """The host as the test before left it; it serves vLLM with a draft model when the file begins."""
    found = Desk(site, worker_lab.host("lived2"), tmp_path)
    if needs_preparing(request):
        run = found.run(BIN / "pyinfra", INVENTORY, "deploy.py", "-y")
        assert run.status == 0, run.output
    return found


def test_the_engine_s_own_acceptance_is_reported_exactly(desk: Desk) -> None:
    with desk.faults(EXACT):
        run = desk.bench("--suite", "quick")
    assert run.status == 0, run.output
    assert "3 of 3 cells have figures" in run.output
    for cell, found in desk.measured().cells.items():
        assert found.failed == 0, cell
        assert {request.tokens for request in found.requests} == {64}
        drafting = found.drafting
        assert (drafting.tokens_a_step, drafting.accepted, drafting.by_position) == (2.0, 0.5, (0.75, 0.25)), cell
        assert found.marks == (), cell
    assert KEY not in run.output
    assert KEY not in "".join(path.read_text() for path in records(desk.site.lab.paths.root))
    assert run.output.count("2.00 tokens a step; 50.0% of draft tokens accepted; by position 75.0%, 25.0%") >= 3


def test_what_is_wrong_is_said_before_the_first_request(desk: Desk) -> None:
    run = desk.bench("--suite", "seed003")
    assert (run.status, "RW1516" in run.output, "sharegpt" in run.output) == (1, True, True), run.output
    run = desk.bench("--suite", desk.suite(SHORT.replace("warmup", "warm_up")))
    assert (run.status, "RW1501" in run.output) == (1, True), run.output
    assert f"{desk.folder}/suite.yml:1: warm_up:" in run.output


def test_cells_that_were_measured_stay_when_the_endpoint_fails(desk: Desk) -> None:
    """It answers the first cell's twelve requests, and dies in the second one."""
    desk.host.run("systemctl restart rackwright-llm")
    with desk.faults({"fault": "die_after_requests", "value": 20}):
        run = desk.bench("--suite", desk.suite())
    assert run.status == 1, run.output
    assert "1 of 2 cells have figures" in run.output
    found = desk.measured()
    assert len(found.cells["short.one"].requests) == 10
    assert found.cells["short.four"].failed > 0
    assert re.search(r"short\.four: \d+ of 20 requests failed, so it has no figures", run.output)
    desk.host.run("for i in $(seq 60); do curl -sf http://127.0.0.1:8000/health && exit 0; sleep 1; done; exit 1")


def test_a_host_that_another_run_writes_to_is_not_measured(desk: Desk) -> None:
    fields = ["id=9.elsewhere", "user=eve", "machine=other", "purpose=deploy.py", "place=other", "pid=7", "started=1"]
    until = desk.host.run("cut -d. -f1 /proc/uptime").stdout.strip()
    desk.host.run(f"cat >{LEASE}", stdin="\n".join([*fields, f"taken={until}", f"expires={int(until) + 60}", ""]))
    run = desk.bench("--suite", desk.suite())
    desk.host.run(f"rm {LEASE}")
    assert (run.status, "RW0705" in run.output, "eve" in run.output) == (1, True, True), run.output
    assert desk.measured().cells == {}


# -- variants in turn: each is a trial, and what served is put back

TINY = """\
warmup: 1
datasets:
  short: {kind: random, input: 64, output: 64}
arrivals:
  one: {concurrency: 1, requests: 4}
  four: {concurrency: 4, requests: 8}
"""
SLOW = {"fault": "slow_factor", "value": 8, "when": {"drafting": False}}
HOME = "/var/lib/rackwright/endpoints/llm"


def served(host: Host) -> tuple[str, str, str]:
    """The release that the endpoint points at, the proven one, and the one that runs."""
    label = '{{index .Config.Labels "rackwright.release"}}'
    line = f"basename $(readlink {HOME}/current); basename $(readlink {HOME}/proven)"
    current, proven, runs = host.run(f"{line}; docker inspect --format '{label}' rackwright-llm").stdout.split()
    return current, proven, runs


def put_back(host: Host, good: tuple[str, str, str]) -> None:
    """Wait until what served serves again, with nothing on trial."""
    over = f"[ ! -e {HOME}/trial ] && ! systemctl is-active --quiet rackwright-job-switch-llm"
    answers = "curl -sf --max-time 2 http://127.0.0.1:8000/health"
    host.run(f"for i in $(seq 120); do {over} && {answers} && exit 0; sleep 1; done; exit 1", timeout=200)
    assert served(host) == good


def test_variants_are_compared_in_rounds_and_what_served_serves_again(desk: Desk) -> None:
    good = served(desk.host)
    with desk.faults(EXACT, SLOW):
        run = desk.bench("--suite", desk.suite(TINY), "--compare", "baseline,eagle3", "--rounds", "2")
    assert run.status == 0, run.output
    assert re.search(r"eagle3 wins everywhere by \d+\.\d\dx \(.*over 2 rounds\)", run.output), run.output
    cells = desk.measured().cells
    assert set(cells) == {f"{name}:short.{cell}" for name in ("baseline", "eagle3") for cell in ("one", "four")}
    assert {len(found.rounds) for found in cells.values()} == {2}
    assert cells["baseline:short.one"].drafting.why_not == "no drafting"
    assert cells["eagle3:short.four"].drafting.by_position == (0.75, 0.25)
    put_back(desk.host, good)
    assert desk.host.run(f"cat {LEASE}", check=False).stdout == ""


def by_kill(running: Running, _: Host) -> None:
    running.stop(signal.SIGKILL)


def by_interrupt(running: Running, _: Host) -> None:
    running.stop(signal.SIGINT)


def by_reboot(running: Running, host: Host) -> None:
    host.reboot()
    running.stop(signal.SIGKILL)


CUTS = {"kill -9": by_kill, "Ctrl-C": by_interrupt, "a reboot": by_reboot}


@pytest.mark.parametrize(
    "cut", with_proof(CUTS, {"kill -9"}, "tests/lab/test_trials.py has the cuts of any switch on trial")
)
def test_a_comparison_that_is_cut_puts_back_what_served(desk: Desk, cut: str) -> None:
    good = served(desk.host)
    words = ["env", *desk.variables({"XDG_CACHE_HOME": str(cache_with_standin(desk.folder))}), str(BIN / "rackwright")]
    words += ["bench", str(INVENTORY), "-y", "--suite", str(desk.suite(TINY)), "--compare", "baseline,eagle3"]
    with desk.faults(SLOW):
        running = Running(desk.site, *words)
        try:
            assert running.until("baseline:short.one") is not None, running.output
            assert served(desk.host)[0] != good[0]
            CUTS[cut](running, desk.host)
        finally:
            running.stop()
    put_back(desk.host, good)
    stays = desk.measured().cells["baseline:short.one"]
    assert (len(stays.requests), stays.failed) == (4, 0)


@in_proof("test_switch.py has releases that do not start; here it is one of a comparison")
def test_a_variant_that_does_not_start_ends_the_comparison(desk: Desk) -> None:
    good = served(desk.host)
    with desk.faults({"fault": "die_at_end_of_load", "when": {"drafting": False}}):
        run = desk.bench("--suite", desk.suite(TINY), "--compare", "baseline,eagle3", "--rounds", "1")
    assert (run.status, desk.measured().cells) == (1, {}), run.output
    put_back(desk.host, good)


@in_proof("1.2 GB of packages; the tests above send the same requests by the stand-in of aiperf")
def test_aiperf_itself_says_what_its_stand_in_says(desk: Desk) -> None:
    with desk.faults(EXACT):
        real = desk.bench("--suite", desk.suite(), cache=Path("~/.cache").expanduser())
        assert real.status == 0, real.output
        by_aiperf = desk.measured().cells
        assert desk.bench("--suite", desk.suite()).status == 0
    for name, stood_in in desk.measured().cells.items():
        assert by_aiperf[name].drafting == stood_in.drafting
        assert [one.tokens for one in by_aiperf[name].requests] == [one.tokens for one in stood_in.requests]
        assert (by_aiperf[name].failed, by_aiperf[name].short) == (stood_in.failed, stood_in.short) == (0, 0)
