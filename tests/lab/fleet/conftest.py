"""A fleet of lab hosts that serve, under constant load. RACKWRIGHT_FLEET_HOSTS says how many (`make proof`: 40)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rackwright.runs.journal import read_record
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests.lab.calm import settle
from tests.lab.conftest import ROOT, Run, Site, end_labs_of_killed_runs
from tests.lab.fleet.told import Asked, Span, read_load, switching

HOSTS = int(os.environ.get("RACKWRIGHT_FLEET_HOSTS", "3"))
RATE = float(os.environ.get("RACKWRIGHT_FLEET_RATE", str(min(1.0, 20 / HOSTS))))
"""Requests a second and host. Clients and hosts share one machine, so a large fleet is asked less often each."""
KEPT = os.environ.get("RACKWRIGHT_FLEET_LAB")
"""Id of a lab to use and to keep, so that a large fleet need not be made anew for each try."""
DOWN = max(1, HOSTS // 10)
"""`max_unavailable` of the proofs."""
LIMIT = pytest.mark.timeout(3600 + 300 * HOSTS)
"""Of a test: several runs, each of which has a limit of its own."""
HOME = "/var/lib/rackwright/endpoints/llm"
LABEL = '{{index .Config.Labels "rackwright.release"}}'


@dataclass
class Fleet:
    """The hosts, the site they are rolled out from, and what its runs were."""

    site: Site

    @property
    def hosts(self) -> list[Host]:
        """All hosts, in inventory order."""
        return self.site.lab.hosts

    def releases(self) -> list[str]:
        """The release that each host runs; where it is not the proven one, both, so that nothing compares equal."""
        look = f"docker inspect --format '{LABEL}' rackwright-llm; basename $(readlink {HOME}/proven)"
        found = [host.run(look, check=False).stdout.split() for host in self.hosts]
        return ["/".join(dict.fromkeys(words)) or f"nothing on host {number}" for number, words in enumerate(found)]

    def serves(self) -> bool:
        """Whether every host runs a release that was proven there."""
        return not any("/" in release or " " in release for release in self.releases())

    def assert_serving(self, releases: list[str]) -> None:
        """Every host serves exactly these."""
        assert self.releases() == releases
        for host in self.hosts:
            assert host.run("curl -fs http://127.0.0.1:8000/health", check=False).returncode == 0, host.name


@dataclass(frozen=True)
class Watched:
    """What the clients saw while something was done."""

    path: Path

    @property
    def asked(self) -> list[Asked]:
        """Every request so far."""
        return read_load(self.path)


@pytest.fixture(scope="package")
def fleet() -> Iterator[Fleet]:
    """A lab of its own with all hosts serving."""
    end_labs_of_killed_runs()
    lab = Lab.open(KEPT or f"t{os.getpid()}f")
    lab.up(hosts=HOSTS, bare=0)
    found = Fleet(Site(lab))
    if not (KEPT and found.serves()):
        run = found.site.deploy(timeout=200 + 30 * HOSTS)
        assert run.status == 0, run.output
    yield found
    if not KEPT:
        lab.down()


@pytest.fixture(autouse=True)
def _settled(fleet: Fleet) -> None:
    settle(fleet.site.lab)


@pytest.fixture
def load(fleet: Fleet, tmp_path: Path) -> Iterator[Watched]:
    """Constant load on every host during a test."""
    with loading(fleet, tmp_path / "load.jsonl") as watched:
        yield watched


@contextmanager
def loading(fleet: Fleet, path: Path) -> Iterator[Watched]:
    """Constant load on every host during a block; fails when it did not start."""
    path.touch()
    targets = [f"{host.name}=http://{host.address}:8000" for host in fleet.hosts]
    words = [sys.executable, "-m", "tests.lab.fleet.load", str(RATE), str(path), *targets]
    process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        _until_all_are_asked(path, process)
        yield Watched(path)
        assert process.poll() is None, process.stderr and process.stderr.read()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def _until_all_are_asked(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while len({one.host for one in read_load(path)}) < HOSTS:
        assert process.poll() is None, "the load ended"
        assert time.monotonic() < deadline, "the load did not reach every host"
        time.sleep(0.2)


def record_of(run: Run) -> list[dict[str, Any]]:
    """The events of a run, from the record that it named."""
    line = next(line for line in run.output.splitlines() if "the record of this run: " in line)
    return read_record(Path(line.rpartition(": ")[2]))


def switches_of(run: Run) -> list[Span]:
    """When each host of a run was switching."""
    return switching(record_of(run))
