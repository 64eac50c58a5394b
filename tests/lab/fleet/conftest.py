"""A fleet of lab hosts that serve, under constant load. RACKWRIGHT_FLEET_HOSTS says how many (`make proof`: 40)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests.lab.calm import settle
from tests.lab.conftest import Site, end_labs_of_killed_runs
from tests.lab.fleet.watching import Watched, loading

HOSTS = int(os.environ.get("RACKWRIGHT_FLEET_HOSTS", "3"))
RATE = float(os.environ.get("RACKWRIGHT_FLEET_RATE", str(min(1.0, 20 / HOSTS))))
"""Requests a second and host. Clients and hosts share one machine, so a large fleet is asked less often each."""
KEPT = os.environ.get("RACKWRIGHT_FLEET_LAB")
"""Id of a lab to use and to keep, so that a large fleet need not be made again for each try."""
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
        """Return each host's running release; where it is not the proven one, both, so that nothing compares equal."""
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


@pytest.fixture(scope="package")
def fleet() -> Iterator[Fleet]:
    """Start a lab of its own with all hosts serving."""
    end_labs_of_killed_runs()
    lab = Lab.open(KEPT or f"t{os.getpid()}f")
    lab.up(hosts=HOSTS, bare=0, short_lists=True, in_memory=True)
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
    with loading(fleet.hosts, RATE, tmp_path / "load.jsonl") as watched:
        yield watched
