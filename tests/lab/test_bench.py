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
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.concerns.lease import LEASE
from rackwright.profiles.presets import Preset, load_presets
from rackwright.record.journal import chosen_record, read_record, records
from rackwright_bench.aiperf.environment import READY, environment_folder
from rackwright_bench.history import figures_of
from rackwright_bench.record import Bench as Measured
from rackwright_bench.record import read_bench
from rackwright_bench.suites.prompts import LOCK, published
from rackwright_lab import faults
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.standins.hub import OWN_FOLDER
from tests import texts
from tests.lab.calm import needs_preparing
from tests.lab.conftest import BIN, ROOT, Run, Site
from tests.lab.products import in_proof, with_proof
from tests.lab.running import Running
from tests.lab.test_profiles import INVENTORY
from tests.lab.test_quality import sums, wrong

pytestmark = pytest.mark.lab

PROFILE = "rtx_pro_6000_vllm_eagle3"
DRAFTS = {"model": "/config/models/eagle3", "num_speculative_tokens": 2, "method": "eagle3"}
KEY = "sk-lab-0d94c6f2b71e4a58"
SETTINGS = {
    "api_key": KEY,
    "gpus": [0],
    "bind": "0.0.0.0",
    "drain_hook": ["/root/bench-balancer", "drain"],
    "ready_hook": ["/root/bench-balancer", "ready"],
    "engine": {"speculative-config": json.dumps({**DRAFTS, "draft_tensor_parallel_size": 1})},
    "gate": {"commit_deadline": 30},
}
CLIENTS = "/root/bench-clients"
BALANCER = f"#!/bin/sh\necho $1 $(date +%s.%N) >>{CLIENTS}\n"
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
        """Run `rackwright bench INVENTORY`, with the stand-in of aiperf unless the call gives another cache."""
        at = cache or cache_with_standin(self.folder)
        return self.run(BIN / "rackwright", "bench", INVENTORY, "-y", *words, variables={"XDG_CACHE_HOME": str(at)})

    def run(self, *words: str | Path, variables: dict[str, str] | None = None) -> Run:
        return self.site.command("env", *self.variables(variables or {}), *words)

    def variables(self, more: dict[str, str]) -> list[str]:
        variables = {
            "PROFILES_HOST": self.host.name,
            "PROFILES_PROFILE": PROFILE,
            "PROFILES_SETTINGS": json.dumps(SETTINGS),
        }
        return [f"{name}={value}" for name, value in {**variables, **more}.items()]

    def suite(self, text: str = SHORT) -> Path:
        path = self.folder / "suite.yml"
        path.write_text(text)
        return path

    def measured(self) -> Measured:
        """Return the newest run."""
        return read_bench(self.site.lab.paths.root, "last")

    @contextmanager
    def faults(self, *rules: dict[str, Any]) -> Iterator[None]:
        self.host.set_engine_faults(*rules)
        try:
            yield
        finally:
            self.host.set_engine_faults()


def cache_with_standin(folder: Path) -> Path:
    """Make a user's cache in which the environment of aiperf holds the stand-in."""
    cache = folder / "cache"
    cached = cache / "rackwright" / "bench" / environment_folder().name
    if not cached.exists():
        (cached / "bin").mkdir(parents=True)
        standin = ROOT / "tests" / "lab" / "aiperf_standin"
        (cached / "bin" / "python").write_text(f'#!/bin/sh\nPYTHONPATH={standin} exec {sys.executable} "$@"\n')
        (cached / "bin" / "python").chmod(0o755)
        (cached / READY).touch()
    return cache


@pytest.fixture
def desk(request: pytest.FixtureRequest, worker_lab: Lab, site: Site, tmp_path: Path) -> Desk:
    """Return the host as the test before left it; it serves vLLM with a draft model when the file begins."""
    found = Desk(site, worker_lab.host("lived2"), tmp_path)
    if needs_preparing(request):
        found.host.run("cat >/root/bench-balancer; chmod 755 /root/bench-balancer", stdin=BALANCER)
        run = found.run(BIN / "pyinfra", INVENTORY, "deploy.py", "-y")
        assert run.status == 0, run.output
    return found


def test_the_engine_s_own_acceptance_is_reported_exactly(desk: Desk) -> None:
    # The watch's probe of one token is a step of the engine, too.
    desk.host.run("systemctl stop rackwright-watch.timer")
    with desk.faults(EXACT):
        run = desk.bench("--suite", "quick")
    desk.host.run("systemctl start rackwright-watch.timer")
    assert run.status == 0, run.output
    assert "3 of 3 cells have figures" in run.output
    for cell, found in desk.measured().cells.items():
        assert found.failed == 0, cell
        assert {request.tokens for request in found.requests} == {64}
        drafting = found.drafting
        assert (drafting.tokens_a_step, drafting.accepted, drafting.by_position) == (2.0, 0.5, (0.75, 0.25)), cell
        assert found.marks == (), cell
    ranked = {figure.cell: figure for figure in figures_of(desk.measured())}
    assert set(ranked) == {"short.one", "short.eight"}, "the third one waits for a rate"
    assert {(one.release, one.gpus, one.load.output) for one in ranked.values()} == {(served(desk.host)[2], 1, 64)}
    assert all(one.gpu for one in ranked.values())
    assert KEY not in run.output
    assert KEY not in "".join(path.read_text() for path in records(desk.site.lab.paths.root))
    for name in ("output-rate.png", "ttft.svg", "bench.html"):
        assert list((desk.site.lab.paths.root / "runs").glob(f"*-bench*.{name}")), run.output
    share = "50.0% of draft tokens accepted"
    accepted = texts.ACCEPTANCE.format(rate="2.00", share=share, positions="by position 75.0%, 25.0%")
    assert run.output.count(accepted) >= 3


def test_what_is_wrong_is_said_before_the_first_request(desk: Desk) -> None:
    run = desk.bench("--suite", "seed003")
    assert (run.status, "RW1516" in run.output, "sharegpt" in run.output) == (1, True, True), run.output
    run = desk.bench("--suite", desk.suite(SHORT.replace("warmup", "warm_up")))
    assert (run.status, "RW1501" in run.output) == (1, True), run.output
    assert f"{desk.folder}/suite.yml:1: warm_up:" in run.output
    made_up = "variants: {made_up: {environment: {TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS: '3'}}}\n"
    run = desk.bench("--suite", desk.suite(SHORT + made_up), "--compare", "settings,made_up")
    assert (run.status, "RW1514" in run.output, "made_up" in run.output) == (1, True, True), run.output


TALKS = json.dumps([{"conversations": [{"value": "Say something long. " * 20}, {"value": "word " * 60}]}] * 50).encode()
SHARED = "datasets: {talks: {kind: sharegpt}}\narrivals: {one: {concurrency: 1, requests: 2}}\nwarmup: 1\n"


def test_files_of_requests_come_from_the_hub_by_the_hash_that_it_publishes(desk: Desk) -> None:
    """Half a file is continued, other bytes are refused, and a suite is measured with what has come."""
    suite, web = desk.suite(SHARED), desk.site.lab.paths.web
    source = published("sharegpt")
    file = web / OWN_FOLDER / "datasets" / source["hub"] / "v1" / source["file"]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(TALKS)
    faults.forget_requests(web)
    try:
        faults.set_fault(web, "wrong_bytes", path="/cdn/datasets/*", times=1)
        run = desk.bench("--suite", suite, "--fetch", "published")
        assert (run.status, "RW1587" in run.output, "huggingface.co has" in run.output) == (1, True, True), run.output
        faults.set_fault(web, "truncated", path="/cdn/datasets/*", times=1)
        run = desk.bench("--suite", suite, "--fetch", "published")
    finally:
        faults.clear(web)
        lock = ROOT / LOCK
        lock.unlink(missing_ok=True)
    assert (run.status, texts.FETCHED.format(sets="talks") in run.output) == (0, True), run.output
    sent = [row for row in faults.requests(web) if str(row["path"]).startswith("/cdn/datasets/")]
    assert [(row["status"], row["range"]) for row in sent] == [(200, ""), (200, ""), (206, f"bytes={len(TALKS) // 2}-")]


ONE_CELL = """\
warmup: 1
datasets:
  short: {kind: random, input: 64, output: 64}
arrivals:
  one: {concurrency: 1, requests: 60}
"""
ANSWERED = "curl -s http://127.0.0.1:8000/metrics | sed -n 's/^vllm:request_success_total{.*} //p' | cut -d. -f1"
QUESTION = json.dumps({"model": "gpt-oss-120b", "messages": [{"role": "user", "content": "Hello"}]})
AS_CLIENT = f"Authorization: Bearer {KEY}\nContent-Type: application/json\n"


def test_other_clients_and_slowed_gpus_mark_the_cell(desk: Desk) -> None:
    words = ["bench", str(INVENTORY), "-y", "--suite", str(desk.suite(ONE_CELL))]
    answered = desk.host.run(ANSWERED).stdout.strip()
    cache = {"XDG_CACHE_HOME": str(cache_with_standin(desk.folder))}
    desk.host.gpu.set(slowed="0x0000000000000040")
    running = Running(desk.site, "env", *desk.variables(cache), str(BIN / "rackwright"), *words)
    try:
        desk.host.run(f"for i in $(seq 300); do [ $({ANSWERED}) -gt {answered} ] && exit 0; sleep 0.2; done; exit 1")
        desk.host.run(f"curl -sf -d '{QUESTION}' -H @- http://127.0.0.1:8000/v1/chat/completions", stdin=AS_CLIENT)
        run = running.end()
    finally:
        running.stop()
        desk.host.gpu.set()
    assert run.status == 0, run.output
    marks = desk.measured().cells["short.one"].marks
    assert marks == ("1 request of other clients", "a GPU was too hot")
    assert f"short.one: doubtful: {marks[0]}" in run.output


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
    no_figures = texts.pattern(texts.NO_FIGURES, failed=r"\d+", asked="20 requests")
    assert re.search(rf"short\.four: {no_figures}", run.output)
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
    """Return the release that the endpoint points at, the proven one, and the one that runs."""
    label = '{{index .Config.Labels "rackwright.release"}}'
    command = f"basename $(readlink {HOME}/current); basename $(readlink {HOME}/proven)"
    current, proven, runs = host.run(f"{command}; docker inspect --format '{label}' rackwright-llm").stdout.split()
    return current, proven, runs


def put_back(host: Host, good: tuple[str, str, str]) -> None:
    """Wait until what served serves again, with nothing on trial."""
    over = f"[ ! -e {HOME}/trial ] && ! systemctl is-active --quiet rackwright-job-switch-llm"
    answers = "curl -sf --max-time 2 http://127.0.0.1:8000/health"
    host.run(f"for i in $(seq 120); do {over} && {answers} && exit 0; sleep 1; done; exit 1", timeout=200)
    assert served(host) == good


def clients(host: Host) -> list[tuple[str, float]]:
    """When the balancer took the host out, and let it in again."""
    lines = host.run(f"cat {CLIENTS} 2>/dev/null", check=False).stdout.splitlines()
    return [(hook, float(moment)) for hook, moment in (row.split() for row in lines)]


def cells_of(desk: Desk) -> list[float]:
    """When each cell of the newest run was there."""
    events = read_record(chosen_record(desk.site.lab.paths.root, "last"))
    return [datetime.fromisoformat(event["time"]).timestamp() for event in events if event["kind"] == "cell"]


def test_variants_are_compared_out_of_service_and_what_served_serves_again(desk: Desk) -> None:
    good = served(desk.host)
    failures = desk.host.run(f"ls {HOME}/failed", check=False).stdout
    desk.host.run(f"rm -f {CLIENTS}")
    with desk.faults(EXACT, SLOW):
        run = desk.bench("--suite", desk.suite(TINY), "--compare", "baseline,eagle3", "--rounds", "1")
    assert run.status == 0, run.output
    judged = r"eagle3 cannot be judged everywhere \(\d+\.\d\dx to \d+\.\d\dx\): more rounds would tell"
    assert re.search(judged, run.output), run.output
    cells = desk.measured().cells
    assert set(cells) == {f"{name}:short.{cell}" for name in ("baseline", "eagle3") for cell in ("one", "four")}
    assert cells["baseline:short.one"].drafting.why_not == "no drafting"
    assert cells["eagle3:short.four"].drafting.by_position == (0.75, 0.25)
    assert all(cell.marks == () for cell in cells.values())
    put_back(desk.host, good)
    assert desk.host.run(f"ls {HOME}/failed", check=False).stdout == failures, "trials have a folder of their own"
    assert f"{HOME}/trials/" in run.output
    assert desk.host.run(f"ls {HOME}/trials").stdout
    assert "reason=" in desk.host.run(f"cat {HOME}/last-switch").stdout.splitlines(), "the next plan tells nothing"
    assert desk.host.run(f"cat {LEASE}", check=False).stdout == ""
    calls = clients(desk.host)
    assert [hook for hook, _ in calls] == ["drain", "ready"] * 2
    (out, back, out_again, back_again), moments = [moment for _, moment in calls], cells_of(desk)
    assert [out < moment < back or out_again < moment < back_again for moment in moments] == [True] * 4


@in_proof("two rounds load the model eight times; one round of the same is above")
def test_rounds_say_which_variant_wins(desk: Desk) -> None:
    good = served(desk.host)
    with desk.faults(EXACT, SLOW):
        run = desk.bench("--suite", desk.suite(TINY), "--compare", "baseline,eagle3", "--rounds", "2")
    assert run.status == 0, run.output
    wins = texts.pattern(texts.WINS, where="everywhere", ratio=r"\d+\.\d\d")
    assert re.search(rf"eagle3 {wins}.*over 2 rounds\)", run.output), run.output
    assert {len(found.rounds) for found in desk.measured().cells.values()} == {2}
    assert list((desk.site.lab.paths.root / "runs").glob("*.eagle3-of-baseline-output-rate.png"))
    put_back(desk.host, good)
    ((name, preset),) = [row for row in presets(desk).items() if row[1].variant == "eagle3"]
    assert all(cell.proven and cell.against == "baseline" for cell in preset.cells.values())
    assert f"kept as preset {name}" in run.output
    offered = advised(desk)
    assert f"1. {name}" in offered
    assert "not the same here" not in offered
    settings = desk.run(BIN / "rackwright", "advise", "-i", INVENTORY, "--preset", name)
    assert yaml.safe_load(settings.output) == preset.settings


@in_proof("two loads more for what tests/unit/test_quality_pairs.py computes")
def test_a_draft_that_changes_the_answers_is_named(desk: Desk) -> None:
    good, file = served(desk.host), sums(desk.folder, 40)
    gate = f"gate={json.dumps({'commit_deadline': 90, 'questions': str(file), 'questions_limit': 20})}"
    with desk.faults({"fault": "answers", "value": wrong(file, 4), "when": {"drafting": True}}):
        words = ("--compare", "baseline,eagle3", "--rounds", "1", "--data", gate)
        run = desk.bench("--suite", desk.suite(TINY), *words)
    assert run.status == 0, run.output
    assert "answers 40 of 40" in run.output
    assert "worse by 25 points" in run.output
    put_back(desk.host, good)


@in_proof("six loads and three downloads; packages/bench/tests/test_bench_dropped.py has the story")
def test_the_guide_s_draft_models_are_measured_by_one_command(desk: Desk) -> None:
    """One of them does not start, as in the guide: it is rolled back, and the others are measured."""
    good = served(desk.host)
    run = desk.bench("--suite", desk.suite(TINY), "--compare", "heads", "--rounds", "1")
    assert (run.status, "10 of 12 cells have figures" in run.output) == (1, True), run.output
    heads = ("baseline", "short_context", "long_context", "throughput_1", "throughput_3", "lmsys")
    assert f"| short | {' | '.join(heads * 2)} |" in run.output.splitlines()
    lengths = {name: len(cell.drafting.by_position) for name, cell in desk.measured().cells.items() if "one" in name}
    assert lengths == {
        "baseline:short.one": 0,
        "short_context:short.one": 3,
        "throughput_1:short.one": 1,
        "throughput_3:short.one": 3,
        "lmsys:short.one": 1,
    }
    put_back(desk.host, good)


OTHER_DRAFT = """\
variants:
  short_context:
    draft: {repository: nvidia/gpt-oss-120b-Eagle3-short-context, mount: /config/models/eagle3}
"""


@in_proof("it downloads another draft model; tests/lab/test_deploy.py has the staging of any release")
def test_a_variant_with_another_draft_is_staged_first_and_evicts_nothing(desk: Desk) -> None:
    good = served(desk.host)
    needs = desk.host.run(f"ls {HOME}/releases; cat {HOME}/releases/*/needs").stdout.splitlines()
    suite = desk.suite(TINY + OTHER_DRAFT)
    run = desk.bench("--suite", suite, "--compare", "settings,short_context", "--rounds", "1")
    assert run.status == 0, run.output
    lines = run.output.splitlines()
    (staged,) = [
        n
        for n, output_line in enumerate(lines)
        if "nvidia/gpt-oss-120b-Eagle3-short-context" in output_line and "fetch" in output_line
    ]
    (began,) = [n for n, output_line in enumerate(lines) if "round 1: settings" in output_line]
    assert staged < began
    assert {name.partition(":")[0] for name in desk.measured().cells} == {"settings", "short_context"}
    put_back(desk.host, good)
    now = desk.host.run(f"ls {HOME}/releases; cat {HOME}/releases/*/needs").stdout.splitlines()
    assert set(needs) < set(now)
    for need in needs:
        kind, _, name = need.partition(" ")
        if kind == "path":
            desk.host.run(f'[ -n "$(ls -A {name})" ]')


def loads(desk: Desk) -> list[str]:
    """Command lines of aiperf for this lab; it has a session of its own, so no signal of a test reaches it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_text().replace("\0", " "))
    return [row for row in found if "launcher.py" in row and str(desk.site.lab.paths.root) in row]


def by_kill(running: Running, _: Host) -> None:
    running.stop(signal.SIGKILL)


def by_interrupt(running: Running, _: Host) -> None:
    running.stop(signal.SIGINT)


def by_reboot(running: Running, host: Host) -> None:
    host.reboot()
    running.stop(signal.SIGKILL)


CUTS = {"kill -9": by_kill, "Ctrl-C": by_interrupt, "a reboot": by_reboot}


@pytest.mark.parametrize(
    "cut",
    with_proof(CUTS, set(), "what served is put back above; tests/unit/test_transaction.py leaves a held switch alone"),
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
            until = time.monotonic() + 10
            while not loads(desk):
                assert time.monotonic() < until, "its second cell does not begin"
            CUTS[cut](running, desk.host)
        finally:
            running.stop()
    put_back(desk.host, good)
    stays = desk.measured().cells["baseline:short.one"]
    assert loads(desk) == []
    if cut == "a reboot":
        # What comes back at boot runs no hook of the site: the next deploy lets its clients in.
        run = desk.run(BIN / "pyinfra", INVENTORY, "deploy.py", "-y")
        assert (run.status, "clients were not let in again" in run.output) == (0, True), run.output
    assert clients(desk.host)[-1][0] == "ready"
    assert (len(stays.requests), stays.failed) == (4, 0)


# -- a tune: variants within bounds and a time, and the winner is kept


def presets(desk: Desk) -> dict[str, Preset]:
    return load_presets(ROOT / f"rackwright.presets.{desk.site.lab.paths.id}.yml")


def advised(desk: Desk) -> str:
    """Return what `advise` says of the host, for the load of the suite."""
    words = ("--context", "64", "--concurrency", "4", "-i", str(INVENTORY), "--limit", desk.host.name)
    advice = desk.run(BIN / "rackwright", "advise", *words)
    assert advice.status == 0, advice.output
    assert f"proven by this site for {desk.host.name} llm" in advice.output
    return advice.output


TUNE = ("--tune", "baseline,draft_1", "--bound", "ttft_p95 <= 60000", "--bound", "context >= 8k")


def test_a_tune_keeps_what_it_proved_and_the_host_serves_what_it_served(desk: Desk) -> None:
    """While it drafts it breaks the bound, and its baseline does not: no interval is needed for that."""
    good = served(desk.host)
    bounds = ("--bound", "ttft_p95 <= 700", *TUNE[4:])
    with desk.faults({**SLOW, "value": 60, "when": {"drafting": True}}):
        run = desk.bench("--suite", desk.suite(TINY), "--tune", "baseline", *bounds, "--rounds", "1")
    assert run.status == 0, run.output
    assert "tune of" in run.output.partition("round 1")[0], "the plan comes first"
    assert texts.AS_BEFORE_TUNE.format(release=good[1][:12]) in run.output
    put_back(desk.host, good)
    assert [hook for hook, _ in clients(desk.host)[-4:]] == ["drain", "ready"] * 2
    (preset,) = [one for one in presets(desk).values() if one.variant == "baseline"]
    assert (preset.variant, preset.gpus, preset.engine, preset.version) == ("baseline", 1, "vllm", "0.14.1")
    assert preset.driver
    assert preset.bounds == [bounds[1], bounds[3]]
    assert "draft" not in preset.settings
    assert "speculative-config" not in preset.settings["engine"]
    shown = yaml.safe_dump(preset.model_dump())
    assert [private for private in (desk.host.name, KEY, desk.host.address, "bench-balancer") if private in shown] == []
    assert "not the same here" not in advised(desk)


@in_proof("a cut and the rest are eight loads more; packages/bench/tests/test_bench_tune.py has the story")
@pytest.mark.parametrize("cut", CUTS)
def test_a_tune_that_is_cut_is_taken_up_again(desk: Desk, cut: str) -> None:
    good = served(desk.host)
    more = ["--suite", str(desk.suite(TINY)), *TUNE, "--rounds", "2"]
    words = ["env", *desk.variables({"XDG_CACHE_HOME": str(cache_with_standin(desk.folder))}), str(BIN / "rackwright")]
    with desk.faults(SLOW):
        running = Running(desk.site, *words, "bench", str(INVENTORY), "-y", *more)
        try:
            assert running.until("baseline:short.one") is not None, running.output
            CUTS[cut](running, desk.host)
        finally:
            running.stop()
        put_back(desk.host, good)
        run = desk.bench(*more, "--resume", "last")
    assert run.status == 0, run.output
    assert "1 trial of" in run.output, "the settings were measured whole, and the baseline was not"
    put_back(desk.host, good)
    assert {len(found.rounds) or 1 for found in desk.measured().cells.values()} == {2}


@in_proof("packages/bench/tests/test_bench_tune.py has the plan's text; here it leaves a host alone")
def test_the_plan_of_a_tune_touches_nothing(desk: Desk) -> None:
    good, before = served(desk.host), records(desk.site.lab.paths.root)
    desk.host.run(f"rm -f {CLIENTS}")
    run = desk.bench("--suite", desk.suite(TINY), *TUNE, "--plan")
    assert run.status == 0, run.output
    assert f"tune of {desk.host.name} llm: 3 variants" in run.output
    assert "engine.speculative-config.num_speculative_tokens 2 -> 1" in run.output
    assert (served(desk.host), clients(desk.host)) == (good, [])
    assert records(desk.site.lab.paths.root) == before


@in_proof("six trials; packages/bench/tests/test_bench_tune.py has the rule")
def test_a_tune_proves_its_winner_by_intervals(desk: Desk) -> None:
    """The host's own settings draft, which is slow here: its baseline is proven, kept and offered, and not deployed."""
    good = served(desk.host)
    with desk.faults({**SLOW, "when": {"drafting": True}}):
        run = desk.bench("--suite", desk.suite(TINY), "--tune", "baseline", "--rounds", "3")
    assert run.status == 0, run.output
    put_back(desk.host, good)
    ((name, preset),) = [row for row in presets(desk).items() if row[1].variant == "baseline"]
    assert (preset.run, preset.rounds) == (desk.measured().id, 3)
    assert all(cell.proven and (cell.low or 0) > 1 for cell in preset.cells.values())
    assert name in advised(desk)


@in_proof("its time is a pure rule of packages/bench/tests/test_bench_tune.py")
def test_a_tune_ends_with_its_time_and_the_host_serves_what_it_served(desk: Desk) -> None:
    good, began = served(desk.host), time.monotonic()
    with desk.faults(SLOW):
        run = desk.bench("--suite", desk.suite(TINY), *TUNE, "--rounds", "50", "--narrow", "0.001", "--timeout", "60")
    assert time.monotonic() - began < 120, run.output
    assert "its time (60 s)" in run.output
    put_back(desk.host, good)


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
