"""Hosts out of service and in again, and restarts in waves, on three hosts that serve."""

from __future__ import annotations

import os
import signal

import pytest

from rackwright_lab.hosts.host import Host
from tests import texts
from tests.lab.conftest import BIN, Run, Site
from tests.lab.fleets import assert_all_serve, begin, proven, rollout, switches
from tests.lab.products import in_proof
from tests.lab.running import Running

pytestmark = pytest.mark.lab

INVENTORY = "inventory/lab.py"
SWAPPED = "GPU 3 is swapped"
THE_THIN_ONE = "the drained host's test shows mark, stop and return; a restart's order and its resume are unit tests"


@pytest.fixture(autouse=True)
def _served(fleet: Site, request: pytest.FixtureRequest) -> None:
    begin(fleet, request)


def boot(host: Host) -> str:
    return host.run("cat /proc/sys/kernel/random/boot_id").stdout.strip()


def is_active(host: Host) -> bool:
    return host.run("systemctl is-active --quiet rackwright-llm", check=False).returncode == 0


def reboot(site: Site, *options: str) -> Run:
    return site.rackwright("reboot", INVENTORY, "--all", "-y", "--plain", "--bake", "1", *options)


def test_a_drained_host_stays_out_until_it_is_taken_in_again(fleet: Site) -> None:
    one, two, three = fleet.lab.hosts
    before = proven(fleet.lab.hosts)
    drained = fleet.rackwright("drain", INVENTORY, "--limit", two.name, "--reason", SWAPPED, "-y")
    assert drained.status == 0, drained.output
    assert not is_active(two)
    refused = fleet.rackwright("drain", INVENTORY, "--limit", one.name, "--reason", "another", "-y")
    assert refused.status == 1
    assert "RW1031" in refused.output
    assert is_active(one)
    two.reboot()
    assert not is_active(two), "it does not start at boot"
    assert f"{SWAPPED}; next: rackwright undrain" in fleet.rackwright("status", INVENTORY).output
    rolled = rollout(fleet, stream_interval=3)
    assert rolled.status == 0, rolled.output
    assert f"{two.name} is skipped: drained since" in rolled.output
    assert switches(rolled) == [one.name, three.name]
    plain = fleet.deploy("-y", limit=[two.name])
    assert plain.status == 0, plain.output
    assert texts.DRAINED in plain.output
    assert not is_active(two)
    back = fleet.rackwright("undrain", INVENTORY, "--limit", two.name, "-y")
    assert back.status == 0, back.output
    after = proven(fleet.lab.hosts)
    assert after[1] == before[1] != after[0]
    assert_all_serve(fleet, after)
    assert "no host" not in fleet.rackwright("plan", INVENTORY).output


@in_proof(THE_THIN_ONE)
def test_a_restart_that_was_cut_goes_on_where_it_was(fleet: Site) -> None:
    hosts = fleet.lab.hosts
    boots, served = [boot(host) for host in hosts], proven(hosts)
    running = Running(fleet, str(BIN / "rackwright"), "reboot", INVENTORY, "--all", "-y", "--plain", "--bake", "1")
    assert running.until("drained: it restarts")
    os.killpg(running.process.pid, signal.SIGKILL)
    running.end()
    first = fleet.rackwright("resume", "-y", "--plain")
    assert first.status == 0, first.output
    assert f"[{hosts[0].name}] restart the host" not in first.output, "not restarted a second time"
    assert all(boot(host) != old for host, old in zip(hosts, boots, strict=True))
    assert_all_serve(fleet, served)


@in_proof(THE_THIN_ONE)
def test_a_host_that_does_not_come_back_stops_the_others(fleet: Site) -> None:
    one, two, three = fleet.lab.hosts
    boots = [boot(host) for host in (one, two, three)]
    served = proven(fleet.lab.hosts)
    two.run("systemctl mask ssh")
    try:
        run = reboot(fleet, "--back-within", "30")
        assert run.status == 4, run.output
        assert f"manual action needed on {two.name}" in run.output
        assert "rackwright resume" in run.output
        assert boot(one) != boots[0]
        assert boot(three) == boots[2], "it was left alone"
    finally:
        two.run("systemctl unmask ssh; systemctl start ssh")
    resumed = fleet.rackwright("resume", "-y", "--plain")
    assert resumed.status == 0, resumed.output
    assert_all_serve(fleet, served)
