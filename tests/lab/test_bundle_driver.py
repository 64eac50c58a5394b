"""NVIDIA's driver out of a bundle, on hosts without a route: switched, gone back from, and a first one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rackwright_lab.lab import Lab
from rackwright_lab.servers.driver import NEW, OLD, install_line
from tests import texts
from tests.lab.closed_site import ClosedSite
from tests.lab.conftest import Run, Site, own_lab
from tests.lab.fleets import proven
from tests.lab.products import in_proof
from tests.lab.test_drivers import held, locks, module
from tests.lab.test_first_driver import take_driver
from tests.refused import refusal

pytestmark = [
    pytest.mark.lab,
    in_proof("tests/programs/test_bundled_driver.py has what comes along; tests/lab/test_drivers.py has the switch"),
]
DRIVER = {"version": NEW, "console": "serial", "first_by_deploy": True}


@pytest.fixture(scope="module")
def worker_lab() -> Iterator[Lab]:
    with own_lab("z", hosts=2, bare=1) as lab:
        lab.host("lived2").run(install_line(OLD))
        take_driver(lab.host("bare1"))
        yield lab


@pytest.fixture(scope="module")
def closed(worker_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClosedSite]:
    """Return the site in its closed network, with its bundle."""
    folder = tmp_path_factory.mktemp("bundle")
    inventory = "tests/lab/closed/inventory.py"
    found = ClosedSite(Site(worker_lab), worker_lab.hosts, folder, inventory=inventory, wanted={})
    found.settings["driver"] = DRIVER
    found.bundled("--system", "debian-12-amd64")
    with found.without_a_route():
        yield found


def deploy(closed: ClosedSite, host: str) -> Run:
    return closed.site.command(*closed.deploying("../../../deploy"), "--limit", host)


def switch(closed: ClosedSite, host: str) -> Run:
    options: tuple[Any, ...] = ("--drivers", "-y", "--plain", "--bake", "1", "--limit", host)
    return closed.rackwright("rollout", *options, **closed.closed())


def test_a_host_without_a_route_is_switched_and_goes_back_by_what_it_has_packed_itself(closed: ClosedSite) -> None:
    host = closed.site.lab.host("lived2")
    staged = deploy(closed, host.name)
    assert staged.status == 0, staged.output
    assert module(host) == OLD
    releases, holds = proven([host]), held(host)
    host.gpu.install_dcgm(faults="3 software 52")
    failed = switch(closed, host.name)
    assert failed.status == 3, failed.output
    refusal(failed.output, "RW4126", OLD)
    assert (module(host), held(host)) == (OLD, holds)
    host.gpu.install_dcgm()
    run = switch(closed, host.name)
    assert run.status == 0, run.output
    assert (module(host), locks(host), proven([host])) == (NEW, [NEW], releases)
    assert closed.requests() == []


def test_a_bare_host_without_a_route_gets_its_first_driver_and_serves(closed: ClosedSite) -> None:
    host = closed.site.lab.host("bare1")
    run = deploy(closed, host.name)
    assert run.status == 0, run.output
    assert module(host) == NEW
    assert "is answered with '42'" in run.output
    assert host.run("ls /etc/apt/sources.list.d").stdout.strip() == ""
    assert closed.requests() == []


def test_a_driver_that_the_bundle_does_not_have_names_the_command_that_writes_it(
    closed: ClosedSite, tmp_path: Path
) -> None:
    host = closed.site.lab.host("lived2")
    closed.settings["driver"] = {**DRIVER, "version": "580.200.01"}
    run = deploy(closed, host.name)
    assert run.status == 1, run.output
    refusal(run.output, "RW4096", "580.200.01")
    assert texts.NO_MODULES.format(version="580.200.01") in run.output
    assert f"rackwright bundle {closed.inventory} --out DIR, with this driver.version" in run.output
