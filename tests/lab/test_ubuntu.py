"""A bare Ubuntu 24.04: its first boot is still under way when the deploy comes; other Docker, systemd and iptables."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.machine.shell import LabError
from rackwright_lab.machine.ubuntu import SEED
from rackwright_lab.servers import ubuntu_driver
from rackwright_lab.servers.driver import NEW, OLD
from tests.lab.conftest import Site
from tests.lab.products import in_proof
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
    assert host.run("systemctl is-active docker.socket", check=False).stdout.strip() != "active", "its package is gone"
    assert "rackwright" not in host.run("iptables-save 2>/dev/null || true").stdout


OPERATOR = """#cloud-config
users:
  - name: racker
    shell: /bin/bash
    sudo: "ALL=(ALL) NOPASSWD:ALL"
    lock_passwd: true
    ssh_authorized_keys:
      - {login}
ssh_pwauth: false
ssh_deletekeys: true
ssh_keys:
  ed25519_private: |
{private}
  ed25519_public: {public}
package_update: false
package_upgrade: false
"""
"""The user-data of docs/how-to/hand-over.md."""


def hand_over(host: Host, folder: Path) -> None:
    """Boot a host as an installer hands it over: with the page's user-data, and a host key that was made here."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", folder / "host"], check=True)
    login = subprocess.run(["ssh-keygen", "-y", "-f", host.key], check=True, capture_output=True, text=True).stdout
    private = "".join(f"    {row}\n" for row in (folder / "host").read_text().splitlines())
    public = (folder / "host.pub").read_text().strip()
    text = OPERATOR.format(login=login.strip(), private=private.rstrip("\n"), public=public)
    host.run(f"mkdir -p {SEED} && echo 'instance-id: handed' >{SEED}/meta-data && cat >{SEED}/user-data", stdin=text)
    host.run("cloud-init clean --logs")
    host.power_off()
    host.start()
    host.run("timeout 120 cloud-init status --wait || true", timeout=150)


def reached_as(folder: Path, host: Host) -> list[str]:
    """Return settings by which a host is reached as the page says: its user, and the key that was handed over."""
    kind, key = (folder / "host.pub").read_text().split()[:2]
    (folder / "known_hosts").write_text(f"[{host.address}]:{host.port} {kind} {key}\n{host.address} {kind} {key}\n")
    values = {"ssh_user": "racker", "ssh_known_hosts_file": folder / "known_hosts"}
    return [text for name, value in values.items() for text in ("--data", f"{name}={value}")]


@in_proof("the first driver on a bare Debian is seen in `make test` (test_first_driver.py)")
def test_a_machine_that_an_installer_hands_over_gets_ubuntus_driver_and_serves(lab: Lab, tmp_path: Path) -> None:
    (host,) = lab.hosts
    site = Site(lab)
    ubuntu_driver.provide(lab.paths.web / "static" / ubuntu_driver.HOST / ubuntu_driver.FOLDER, [OLD, NEW])
    host.gpu.remove_driver()
    host.run(f"echo '{ubuntu_driver.SOURCE}' >/etc/apt/sources.list.d/restricted.list")
    hand_over(host, tmp_path)
    driver = {"version": NEW, "source": "distribution", "first_by_deploy": "true", "console": "serial"}
    options = [text for key, value in driver.items() for text in ("--data", f"driver.{key}={value}")]
    # The stand-in's archive has no nvlsm.
    options += ["--data", "hardware.compute_capability=[]", *reached_as(tmp_path, host)]
    run = site.deploy("-y", *options)
    assert run.status == 0, run.output
    assert "is answered with '42'" in run.output
    assert host.run("cat /sys/module/nvidia/version").stdout.strip() == NEW
    assert site.deploy("-y", *options).changed == []
