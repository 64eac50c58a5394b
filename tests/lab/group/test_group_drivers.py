"""NVIDIA's driver of two hosts that serve one endpoint over NVLink: one turn, their IMEX domain, and back together.

The tests are one story, in this order.
"""

from __future__ import annotations

from typing import Any

import pytest

from rackwright_lab.lab import Lab
from rackwright_lab.servers.driver import NEW, OLD, install_line
from tests.lab.conftest import Run, Site
from tests.lab.group.serving import ask, boot, deploy, rackwright, wait_until_one_release_serves
from tests.lab.products import in_proof
from tests.refused import refusal

pytestmark = [
    pytest.mark.lab,
    in_proof(
        "tests/unit/test_driver_group.py has the order; tests/lab/test_drivers.py switches a host that serves alone"
    ),
]


def settings(version: str) -> dict[str, Any]:
    return {"group_transport": "nvlink", "driver": {"version": version, "console": "serial"}}


def modules(site: Site) -> list[str]:
    return [host.run("cat /sys/module/nvidia/version").stdout.strip() for host in site.lab.hosts]


def domain(site: Site) -> str:
    return site.lab.hosts[0].run("nvidia-imex-ctl -N").stdout.strip()


def switch(site: Site, version: str) -> Run:
    return rackwright(site, "rollout", "--drivers", "-y", "--plain", "--bake", "1", **settings(version))


@pytest.fixture(scope="module")
def _domain_is_up(worker_lab: Lab) -> None:
    addresses = "\n".join(host.address for host in worker_lab.hosts)
    for host in worker_lab.hosts:
        host.run(f"mkdir -p /etc/nvidia-imex; printf '%s\\n' '{addresses}' >/etc/nvidia-imex/nodes_config.cfg")
        host.run(install_line(OLD, "nvidia-imex"))


@pytest.mark.usefixtures("_domain_is_up")
def test_they_are_switched_in_one_turn_and_their_imex_domain_is_up_before_the_head_is_asked(site: Site) -> None:
    boots = [boot(host) for host in site.lab.hosts]
    deployed = deploy(site, **settings(NEW))
    assert deployed.status == 0, deployed.output
    assert modules(site) == [OLD, OLD]
    run = switch(site, NEW)
    assert run.status == 0, run.output
    assert modules(site) == [NEW, NEW]
    assert not {boot(host) for host in site.lab.hosts} & set(boots)
    assert domain(site) == "Domain State: UP"
    assert ask(site.lab.hosts[0]) == "42"


@pytest.mark.usefixtures("_domain_is_up")
def test_where_one_of_them_cannot_install_it_all_of_them_go_back(site: Site) -> None:
    head, member = site.lab.hosts
    staged = deploy(site, **settings(OLD))
    assert staged.status == 0, staged.output
    at_boot = "/usr/lib/rackwright-lab/module-at-boot"
    member.run(f"mount --bind {at_boot} {at_boot}; mount -o remount,bind,ro {at_boot}")
    run = switch(site, OLD)
    assert run.status == 3, run.output
    refusal(run.output, "RW4126", head.name, member.name)
    assert modules(site) == [NEW, NEW]
    assert domain(site) == "Domain State: UP"
    wait_until_one_release_serves(site)


@pytest.mark.usefixtures("_domain_is_up")
def test_over_several_drivers_nothing_is_started(site: Site) -> None:
    head, member = site.lab.hosts
    deployed = deploy(site, **settings(NEW))
    assert deployed.status == 0, deployed.output
    other = OLD if modules(site)[1] == NEW else NEW
    names = ("nvidia-driver-cuda", "libcuda1", "nvidia-kernel-open-dkms", "nvidia-fabricmanager", "nvidia-imex")
    member.run("systemctl stop rackwright-llm")
    options = "--allow-downgrades --allow-change-held-packages"
    member.run(f"apt-get -q -y install {options} {' '.join(f'{name}={other}-1' for name in names)}")
    member.reboot()
    run = deploy(site, group_transport="nvlink")
    assert run.status == 1, run.output
    refusal(run.output, "RW3172", "the NVIDIA driver", head.name)
