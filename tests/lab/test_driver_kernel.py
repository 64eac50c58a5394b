"""A driver that comes with a kernel: GRUB boots that once, and it is the default after its proof alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rackwright_lab.hosts.grub import install_grub
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.servers.driver import KERNEL, OLD, WITH_KERNEL, install_line
from tests.lab.conftest import Site, own_lab
from tests.lab.fleets import assert_all_serve, proven
from tests.lab.products import in_proof
from tests.lab.test_drivers import module, switch, words
from tests.refused import refusal

pytestmark = [
    pytest.mark.lab,
    in_proof("tests/lab/test_drivers.py switches without a kernel; tests/unit/test_driver_kernel.py reads GRUB's menu"),
]
CHOICE = "/etc/default/grub.d/rackwright-driver.cfg"


@pytest.fixture(scope="module")
def worker_lab() -> Iterator[Lab]:
    with own_lab("k", hosts=1) as lab:
        lab.hosts[0].run(install_line(OLD))
        yield lab


def kernel(host: Host) -> str:
    return host.run("uname -r").stdout.strip()


def test_a_kernel_is_booted_once_and_left_again_where_its_driver_is_not_proven(site: Site) -> None:
    [host] = site.lab.hosts
    before = install_grub(host)
    deployed = site.deploy("-y", *words(WITH_KERNEL))
    assert deployed.status == 0, deployed.output
    releases = proven([host])
    host.gpu.install_dcgm(faults="3 software 52")
    failed = switch(site, WITH_KERNEL)
    assert failed.status == 3, failed.output
    refusal(failed.output, "RW4126", "dcgmi diag -r 1")
    assert (kernel(host), module(host)) == (before, OLD)
    assert host.run(f"ls /boot/vmlinuz-{KERNEL} {CHOICE}").returncode == 0, (
        "the new kernel is there, and not the default"
    )
    host.reboot()
    assert kernel(host) == before
    host.gpu.install_dcgm()
    run = switch(site, WITH_KERNEL)
    assert run.status == 0, run.output
    assert (kernel(host), module(host)) == (KERNEL, WITH_KERNEL)
    assert host.run(f"ls {CHOICE}", check=False).returncode != 0
    assert CHOICE not in host.run("cat /var/lib/rackwright/owned.json").stdout
    assert_all_serve(site, releases)
    host.reboot()
    assert kernel(host) == KERNEL, "it is the default now"
