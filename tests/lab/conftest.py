"""The lab of a test run: one a worker, kept for the whole run; a failing test leaves its hosts' journals."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePath

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.machine.paths import STATE_ROOT
from rackwright_lab.machine.shell import LabError
from tests import warm
from tests.lab.alarms import alarms_since
from tests.lab.calm import distrust, settle
from tests.lab.products import without_reason
from tests.lab.signs import recorded

ROOT = Path(__file__).parents[2]
ARTEFACTS = ROOT / "artefacts"
BIN = Path(sys.executable).parent
PATIENCE = 900.0
"""Seconds for a command; a crowded machine needs most of them, and a hang is a hang a few minutes later too."""
LATE = 124
"""The status of a run that was ended for its time, as `timeout` has it."""
collect_ignore = [] if os.environ.get("RACKWRIGHT_SOAK_MINUTES") else ["soak"]
LONG = (
    "test_group.py",
    "test_group_lifeline.py",
    "test_group_maintenance.py",
    "test_rollout.py",
    "test_blame.py",
    "test_maintenance.py",
    "test_upgrade.py",
    "test_group_trtllm.py",
    "test_group_sglang.py",
    "test_group_profiles.py",
    "test_switch.py",
    "test_declared.py",
    "test_deploy.py",
    "test_firewall.py",
    "test_group_under_load.py",
    "test_leaks.py",
    "test_field.py",
    "test_host.py",
    "test_several_endpoints.py",
    "test_trials.py",
    "test_firewall_among_others.py",
    "test_lab_itself.py",
    "test_healing.py",
    "test_switch_alone.py",
    "test_pages.py",
    "test_bench.py",
    "test_ssh_faults.py",
    "test_profiles.py",
    "test_staging.py",
    "test_ubuntu.py",
    "test_bundle_apart.py",
    "test_teardown.py",
    "test_dockerd.py",
    "test_endpoint.py",
    "test_retention.py",
    "test_cuts.py",
    "test_api_key.py",
    "test_probe.py",
    "test_hostile_engine.py",
)
"""Files that take minutes, the longest first: begun first, so that labs side by side end at about the same time.

Files of one folder stand side by side: one worker takes them, in this order.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long files first; within a file nothing moves. What is left to `make proof` has its reason."""
    if bare := without_reason(items):
        raise pytest.UsageError(f"a mark `proof` without a word why: {', '.join(bare)}")
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))


class OneLabAFolder(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Each file has a worker; files of a folder, which share what they have deployed, have the same one."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def scope_of(test: str) -> str:
    """Return the group of tests that one worker takes: those of a file, or of a folder below this one."""
    file = PurePath(test.partition("::")[0])
    return str(file if file.parent.name == "lab" else file.parent)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneLabAFolder:
    """Let workers share the tests in this way."""
    return OneLabAFolder(config, log)


@dataclass(frozen=True)
class Run:
    """One run of a command: its exit status and everything that it printed."""

    status: int
    output: str

    @property
    def table(self) -> dict[str, tuple[int, int, int]]:
        """Return pyinfra's results: operation to hosts with success, error, no change."""
        rows = re.findall(r"^ {4}(\S.*?\S)\s{2,}\d+\s+(\d+|-)\s+(\d+|-)\s+(\d+|-)\s*$", self.output, re.MULTILINE)
        return {name: (_count(well), _count(bad), _count(none)) for name, well, bad, none in rows}

    @property
    def changed(self) -> list[str]:
        """Names of operations that changed something."""
        return [name for name, counts in self.table.items() if counts[0] and name != "Grand total"]


def _count(text: str) -> int:
    return 0 if text == "-" else int(text)


@dataclass
class Site:
    """The checkout as a site, deployed onto lab hosts by the commands that users type."""

    lab: Lab
    runs: list[Run] = field(default_factory=list)

    def deploy(self, *options: str, limit: Sequence[str] = (), timeout: float = PATIENCE) -> Run:
        """`pyinfra inventory/lab.py deploy.py -y`, limited to some hosts."""
        limits = [argument for name in limit for argument in ("--limit", name)]
        words = ("inventory/lab.py", "deploy.py", *limits, *(options or ("-y",)))
        return self.command(BIN / "pyinfra", *words, timeout=timeout)

    def rackwright(self, *words: str, timeout: float = PATIENCE) -> Run:
        """`rackwright ...`."""
        return self.command(BIN / "rackwright", *words, timeout=timeout)

    def command(self, *words: str | Path, timeout: float = PATIENCE, cwd: Path = ROOT) -> Run:
        """Run a command with this lab's id; fails the test, with what it printed, when it does not end in time."""
        try:
            self.runs.append(Run(*warm.run([str(argument) for argument in words], cwd, self.environment(), timeout)))
        except subprocess.TimeoutExpired as late:
            self.runs.append(Run(LATE, str(late.output)))
            pytest.fail(f"{words[0]} did not end within {timeout:g} s:\n{self.runs[-1].output}")
        return self.runs[-1]

    def environment(self) -> dict[str, str]:
        """Return the environment of a command of this lab."""
        variables = {"RACKWRIGHT_LAB_ID": self.lab.paths.id, "RACKWRIGHT_RUNS": str(self.lab.paths.root / "runs")}
        return {**os.environ, **variables, "PYINFRA_PROGRESS": "off", "COLUMNS": "1000"}


@pytest.fixture(scope="session")
def worker_lab() -> Iterator[Lab]:
    """Share the lab of this test process: one bare and one lived-in host, deployed by the first file that wants it.

    Files that reset their hosts, or deploy them together, have another fixture of this name, with a lab of their own:
    the hosts of this one stay deployed, and a first deploy is what costs most in these tests.
    """
    with own_lab("", hosts=2, bare=1) as lab:
        yield lab


@contextmanager
def own_lab(letters: str, hosts: int, bare: int = 0) -> Iterator[Lab]:
    """Boot a lab of this test process, and take it down; its id is the process's number and these letters.

    So is the lock file gone that a rebuild writes for it.
    """
    end_labs_of_killed_runs()
    lab = Lab.open(f"t{os.getpid()}{letters}")
    lab.down()
    try:
        lab.up(hosts=hosts, bare=bare, short_lists=True, in_memory=True)
        yield lab
    finally:
        lab.down()
        for kind in ("lock", "presets"):
            (ROOT / f"rackwright.{kind}.{lab.paths.id}.yml").unlink(missing_ok=True)


def end_labs_of_killed_runs() -> None:
    """Take down labs whose test process is gone."""
    for folder in STATE_ROOT.glob("t*"):
        found = re.fullmatch(r"t(\d+)[a-z]*", folder.name)
        if found and not Path("/proc", found[1]).exists():
            Lab.open(folder.name).down()


@pytest.fixture
def site(worker_lab: Lab, request: pytest.FixtureRequest) -> Iterator[Site]:
    """Yield the checkout as a site; after a failure the runs and the hosts' journals are in artefacts/."""
    found = Site(worker_lab)
    yield found
    report = getattr(request.node, "failed_report", None)
    if report is not None:
        _leave_artefacts(request.node.name, found)


@pytest.fixture(autouse=True)
def _settled(request: pytest.FixtureRequest) -> None:
    """No test inherits what the one before left on the worker's hosts. Files with a lab of their own override it."""
    if "worker_lab" in request.fixturenames:
        settle(request.getfixturevalue("worker_lab"))


@pytest.fixture(autouse=True)
def no_false_alarm(request: pytest.FixtureRequest) -> Iterator[None]:
    """No host's watch may find a hung engine, whatever a test does to hosts and engines; unless its mark says so."""
    lab = request.getfixturevalue("worker_lab") if "worker_lab" in request.fixturenames else None
    if lab is None or request.node.get_closest_marker("hangs") is not None:
        yield
        return
    began = int(time.time())
    with recorded(lab, ARTEFACTS / f"signs-{os.getpid()}.jsonl", request.node.name):
        yield
    assert alarms_since(lab, began) == {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Let fixtures know that their test has failed."""
    report = yield
    if report is not None and report.failed:
        item.failed_report = report
        distrust(item)
    return report


def _leave_artefacts(test: str, site: Site) -> None:
    folder = ARTEFACTS / re.sub(r"[^\w.-]+", "_", test)
    folder.mkdir(parents=True, exist_ok=True)
    for number, run in enumerate(site.runs, 1):
        (folder / f"run-{number}.txt").write_text(f"exit {run.status}\n{run.output}")
    for host in site.lab.hosts:
        (folder / f"{host.name}.journal").write_text(_journal(host))


def _journal(host: Host) -> str:
    try:
        return host.journal("--lines", "3000")
    except (OSError, LabError, subprocess.SubprocessError) as error:
        return f"no journal: {error}"
