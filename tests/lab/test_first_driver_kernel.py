"""A first driver that comes with a kernel: a deploy restarts no host, and leaves both to a rollout."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rackwright_lab.hosts.grub import install_grub
from rackwright_lab.lab import Lab
from rackwright_lab.servers.driver import KERNEL, WITH_KERNEL
from tests.lab.conftest import Site, own_lab
from tests.lab.products import in_proof
from tests.lab.test_driver_kernel import CHOICE, kernel
from tests.lab.test_first_driver import INVENTORY, boot, module, take_driver, words
from tests.refused import refusal

pytestmark = [
    pytest.mark.lab,
    in_proof("test_first_driver.py brings one without a kernel; tests/unit/test_driver.py has what a deploy does then"),
]


@pytest.fixture(scope="module")
def worker_lab() -> Iterator[Lab]:
    with own_lab("n", hosts=1, bare=1) as lab:
        yield lab


def test_a_first_driver_with_a_kernel_is_left_to_a_rollout_by_a_deploy(site: Site) -> None:
    host = site.lab.host("bare1")
    take_driver(host)
    before, boot_before = install_grub(host), boot(host)
    options = words(WITH_KERNEL, first_by_deploy="true")
    run = site.deploy("-y", *options, limit=[host.name])
    assert run.status == 1, run.output
    refusal(run.output, "RW4005", WITH_KERNEL)
    assert f"comes with the kernel {KERNEL}" in run.output
    assert f"next: rackwright rollout {INVENTORY} --drivers --limit HOST" in run.output
    assert (boot(host), module(host)) == (boot_before, "")
    assert host.run("ls /boot").stdout.split() == ["grub", f"vmlinuz-{before}"], "nothing was installed"
    again = site.deploy("-y", *options, limit=[host.name])
    refusal(again.output, "RW3121", host.name)
    plan = site.rackwright("plan", INVENTORY, "--limit", host.name, *options)
    assert f"{WITH_KERNEL} with the kernel {KERNEL} is staged" in plan.output, plan.output
    host.reboot()
    assert kernel(host) == before

    switched = site.rackwright("rollout", INVENTORY, "--drivers", "-y", "--plain", "--limit", host.name, *options)
    assert switched.status == 0, switched.output
    assert (kernel(host), module(host)) == (KERNEL, WITH_KERNEL)
    assert host.run(f"ls {CHOICE}", check=False).returncode != 0
    served = site.deploy("-y", *options, limit=[host.name])
    assert served.status == 0, served.output
    assert "is answered with '42'" in served.output
    host.reboot()
    assert (kernel(host), module(host)) == (KERNEL, WITH_KERNEL), "it is the default now"
