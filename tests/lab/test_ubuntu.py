"""A bare Ubuntu 24.04: its first boot is still under way when the deploy comes; other Docker, systemd and iptables."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.machine.shell import LabError
from rackwright_lab.machine.ubuntu import SEED
from tests.lab.conftest import Site
from tests.lab.running import deploying

pytestmark = pytest.mark.lab

FIRST_BOOT = """#cloud-config
runcmd:
- touch /root/first-boot-begins
- until [ -e /root/let-go ]; do sleep 0.5; done
- touch /root/first-boot-ends
"""
PACKAGES = r"dpkg-query -W -f '${Package} ${db:Status-Status}\n' docker.io containerd runc nvidia-container-toolkit"


@pytest.fixture
def lab() -> Iterator[Lab]:
    """Start a lab of one Ubuntu host, of this process."""
    found = Lab.open(f"t{os.getpid()}u")
    try:
        found.up(hosts=1, bare=0, ubuntu=1, short_lists=True, in_memory=True)
    except LabError as error:
        if "ubuntu" in str(error).lower():
            pytest.skip(f"Ubuntu's archive cannot be had here: {error}")
        raise
    yield found
    found.down()


def begin_first_boot(host: Host) -> None:
    """Boot as a fresh machine whose cloud-init has work for some time; returns while it works."""
    host.run(
        f"mkdir -p {SEED} && echo 'instance-id: first' >{SEED}/meta-data && cat >{SEED}/user-data", stdin=FIRST_BOOT
    )
    host.run("cloud-init clean --logs")
    host.power_off()
    host.start(wait=False)
    deadline = time.monotonic() + 120
    while not (host.root / "root/first-boot-begins").exists() or host.ssh("true").returncode != 0:
        assert time.monotonic() < deadline, host.console()
        time.sleep(0.5)


def test_a_fresh_ubuntu_is_waited_for_deployed_rebooted_and_left_as_it_was(lab: Lab) -> None:
    (host,) = lab.hosts
    site = Site(lab)
    begin_first_boot(host)
    with deploying(site, host.name) as running:
        assert running.until("waiting for cloud-init") is not None, running.output
        host.run("touch /root/let-go")
        run = running.end()
    assert run.status == 0, run.output
    assert (host.root / "root/first-boot-ends").exists()
    assert "is answered with '42'" in run.output
    assert host.run("docker info --format '{{.OperatingSystem}}'").stdout.startswith("Ubuntu 24.04")
    assert site.deploy().changed == []
    host.reboot()
    after = site.deploy()
    assert after.status == 0, after.output
    assert after.changed == []
    gone = site.rackwright("teardown", "inventory/lab.py", "--all", "-y", "--purge")
    assert gone.status == 0, gone.output
    assert " installed" not in host.run(PACKAGES, check=False).stdout
    assert "rackwright" not in host.run("iptables-save 2>/dev/null || true").stdout
