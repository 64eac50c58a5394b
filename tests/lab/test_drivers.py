"""NVIDIA's driver switched in waves on serving hosts: packages of its names, a module that changes at the restart."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from rackwright.concerns.driver.seen import LOCK
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.servers.driver import ALONE, BROKEN, FOLDER, HOST, NEW, OLD, install_line
from tests import texts
from tests.lab.conftest import BIN, Run, Site, own_lab
from tests.lab.fleets import assert_all_serve, proven
from tests.lab.products import in_proof
from tests.lab.running import Running
from tests.refused import refusal

pytestmark = pytest.mark.lab

INVENTORY = "inventory/lab.py"
THE_THIN_ONE = "the switch's test shows stage, restart and proof; what goes wrong has unit tests of each decision"


@pytest.fixture(scope="module")
def worker_lab() -> Iterator[Lab]:
    with own_lab("v", hosts=2) as lab:
        for host in lab.hosts:
            host.run(install_line(OLD))
        yield lab


@pytest.fixture
def served(site: Site) -> Site:
    run = site.deploy()
    assert run.status == 0, run.output
    return site


def module(host: Host) -> str:
    return host.run("cat /sys/module/nvidia/version").stdout.strip()


def boot(host: Host) -> str:
    return host.run("cat /proc/sys/kernel/random/boot_id").stdout.strip()


def held(host: Host) -> list[str]:
    """Return the driver's packages that are held, without those of the container toolkit."""
    names = host.run("apt-mark showhold").stdout.split()
    return sorted(name for name in names if "cuda" in name or ("nvidia" in name and "container" not in name))


def locks(host: Host) -> list[str]:
    """Return the drivers that apt is kept at, by the files that it reads."""
    names = host.run("ls /etc/apt/preferences.d").stdout.split()
    return [name.removeprefix(LOCK) for name in names if name.startswith(LOCK)]


def words(version: str) -> list[str]:
    return ["--data", f"driver.version={version}", "--data", "driver.console=serial"]


def switch(site: Site, version: str, *options: str) -> Run:
    return site.rackwright("rollout", INVENTORY, "--drivers", "-y", "--plain", "--bake", "1", *words(version), *options)


def test_a_deploy_stages_and_a_rollout_switches_one_host_after_the_other(served: Site) -> None:
    one, two = served.lab.hosts
    releases, boots = proven([one, two]), [boot(one), boot(two)]
    staged = served.deploy("-y", *words(NEW))
    assert staged.status == 0, staged.output
    assert module(one) == OLD
    assert held(one) == []
    again = served.deploy("-y", *words(NEW))
    assert (again.status, again.changed) == (0, []), again.output
    assert texts.DRIVER_PENDING in again.output
    run = switch(served, NEW)
    assert run.status == 0, run.output
    assert "2 hosts switched and proven" in run.output
    assert [module(one), module(two)] == [NEW, NEW]
    assert boots[0] != boot(one)
    assert boots[1] != boot(two)
    assert_all_serve(served, releases)
    assert "nvidia-kernel-open-dkms" in one.run("apt-mark showhold").stdout
    assert locks(one) == [NEW]
    assert one.run("ls -d /run/rackwright-lab/ib_umad", check=False).returncode == 0, "loaded at the boot, for nvlsm"
    assert "RW4196" in switch(served, NEW).output


@in_proof(THE_THIN_ONE)
def test_a_driver_that_does_not_load_stops_at_the_canary_which_goes_back(served: Site) -> None:
    one, two = served.lab.hosts
    holds, drivers = held(one), locks(one)
    releases, before, untouched = proven([one, two]), module(one), boot(two)
    run = switch(served, BROKEN)
    assert run.status == 3, run.output
    assert "RW4126" in run.output
    assert [module(one), module(two)] == [before, before]
    assert boot(two) == untouched
    assert (held(one), locks(one)) == (holds, drivers)
    assert_all_serve(served, releases)
    refusal(served.rackwright("plan", INVENTORY, *words(BROKEN)).output, "RW4106", BROKEN)


@in_proof(THE_THIN_ONE)
def test_gpus_are_diagnosed_after_the_restart_and_a_broken_one_takes_the_host_back(served: Site) -> None:
    one, two = served.lab.hosts
    releases, now = proven([one, two]), module(two)
    target = OLD if now == NEW else NEW
    one.gpu.install_dcgm(faults="3 software 52")
    try:
        run = switch(served, target)
        assert run.status == 3, run.output
        refusal(run.output, "RW4126", "dcgmi diag -r 1")
        assert [module(one), module(two)] == [now, now]
        assert_all_serve(served, releases)
        one.gpu.install_dcgm()
        again = switch(served, target)
        assert again.status == 0, again.output
        assert "dcgmi diag -r 1" in again.output
        assert_all_serve(served, releases)
    finally:
        one.gpu.remove_dcgm()


@in_proof(THE_THIN_ONE)
def test_a_switch_that_was_cut_is_resumed_without_a_second_restart(served: Site) -> None:
    one, two = served.lab.hosts
    target = OLD if module(one) == NEW else NEW
    options = ("rollout", INVENTORY, "--drivers", "-y", "--plain", "--bake", "1", *words(target))
    running = Running(served, str(BIN / "rackwright"), *options)
    assert running.until("drained: it restarts")
    os.killpg(running.process.pid, signal.SIGKILL)
    running.end()
    first = served.rackwright("resume", "-y", "--plain")
    assert first.status == 0, first.output
    assert f"[{one.name}] switch NVIDIA's driver" not in first.output, "not restarted a second time"
    assert [module(one), module(two)] == [target, target]


@in_proof(THE_THIN_ONE)
def test_a_host_that_does_not_come_back_stops_the_others_and_is_proven_later(served: Site) -> None:
    one, two = served.lab.hosts
    now = module(two)
    target = OLD if now == NEW else NEW
    one.run("systemctl mask ssh")
    try:
        run = switch(served, target, "--timeout", "30")
        assert run.status == 4, run.output
        refusal(run.output, "RW0636", one.name)
        assert module(two) == now
    finally:
        one.run("systemctl unmask ssh; systemctl start ssh")
    resumed = served.rackwright("resume", "-y", "--plain")
    assert resumed.status == 0, resumed.output
    assert [module(one), module(two)] == [target, target]


@in_proof(THE_THIN_ONE)
def test_without_the_packages_of_the_way_back_nothing_is_staged(served: Site) -> None:
    one, _ = served.lab.hosts
    now, target = module(one), OLD if module(one) == NEW else NEW
    files = sorted((served.lab.paths.web / "static" / HOST / FOLDER).glob(f"*_{now}-1_*.deb"))
    one.run("apt-get clean; rm -rf /var/lib/rackwright/driver")
    for file in files:
        file.rename(file.with_suffix(".gone"))
    try:
        run = served.deploy("-y", *words(target), limit=[one.name])
        assert run.status == 1
        assert texts.NO_WAY_BACK in run.output
        assert module(one) == now
    finally:
        for file in files:
            file.with_suffix(".gone").rename(file)


@in_proof(THE_THIN_ONE)
def test_a_driver_without_its_fabric_manager_is_not_staged(served: Site) -> None:
    one, _ = served.lab.hosts
    run = served.deploy("-y", *words(ALONE), limit=[one.name])
    assert run.status == 1
    assert texts.NO_COMPANION in run.output
    nowhere = served.deploy("-y", *words("580.200.01"), limit=[one.name])
    assert nowhere.status == 1
    assert texts.NO_MODULES.format(version="580.200.01") in nowhere.output
    assert texts.NO_COMPANION not in nowhere.output


@in_proof(THE_THIN_ONE)
def test_a_teardown_releases_the_driver_and_leaves_it(served: Site) -> None:
    one, _ = served.lab.hosts
    now = module(one)
    assert held(one)
    run = served.rackwright("teardown", INVENTORY, "-y", "--limit", one.name)
    assert run.status == 0, run.output
    assert held(one) == []
    assert one.run("ls /var/lib/rackwright/driver", check=False).returncode != 0
    assert module(one) == now
