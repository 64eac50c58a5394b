"""NVIDIA's driver of two hosts that serve one endpoint over NVLink: one turn, their IMEX domain, and back together.

The tests are one story, in this order.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.servers.driver import NEW, OLD, install_line
from tests import texts
from tests.lab.conftest import Run, Site
from tests.lab.group.serving import (
    ask,
    begin_run,
    boot,
    deploy,
    rackwright,
    resume,
    wait_until_one_release_serves,
)
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


def assert_both_serve_with(site: Site, version: str) -> None:
    """Assert that the driver of both is this one, their IMEX domain is up, and one release serves."""
    assert modules(site) == [version, version]
    assert domain(site) == "Domain State: UP"
    wait_until_one_release_serves(site)


SWITCH = ("--drivers", "-y", "--plain", "--bake", "1")


def switch(site: Site, version: str, *options: str) -> Run:
    return rackwright(site, "rollout", *SWITCH, *options, **settings(version))


def staged_other(site: Site) -> tuple[str, str]:
    """Stage the driver that the hosts do not have; returns it, and that of now."""
    now = modules(site)[0]
    other = OLD if now == NEW else NEW
    run = deploy(site, **settings(other))
    assert run.status == 0, run.output
    return other, now


@contextmanager
def no_imex_beside(host: Host, version: str) -> Iterator[None]:
    """Let a host's IMEX not start beside a driver."""
    folder = "/etc/systemd/system/nvidia-imex.service.d"
    check = f"! grep -qx {version} /sys/module/nvidia/version"
    host.run(f"mkdir -p {folder}; printf \"[Service]\\nExecStartPre=/bin/sh -c '{check}'\\n\" >{folder}/lab.conf")
    host.run("systemctl daemon-reload")
    try:
        yield
    finally:
        host.run(f"rm -r {folder}; systemctl daemon-reload; systemctl restart nvidia-imex")


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
    assert_both_serve_with(site, NEW)


@pytest.mark.usefixtures("_domain_is_up")
def test_where_the_imex_of_one_does_not_start_all_of_them_go_back(site: Site) -> None:
    head, member = site.lab.hosts
    target, now = staged_other(site)
    with no_imex_beside(member, target):
        run = switch(site, target)
    assert run.status == 3, run.output
    refusal(run.output, "RW4104", "nvidia-imex does not start", "journalctl -u nvidia-imex")
    refusal(run.output, "RW4126", head.name, member.name)
    assert_both_serve_with(site, now)


@pytest.mark.usefixtures("_domain_is_up")
def test_a_cut_switch_of_both_is_resumed_without_a_second_restart(site: Site) -> None:
    target, _ = staged_other(site)
    running = begin_run(site, "rollout", *SWITCH, **settings(target))
    assert running.until("drained: it restarts")
    os.killpg(running.process.pid, signal.SIGKILL)
    cut = running.end().output
    restarted = [host.name for host in site.lab.hosts if f"[{host.name}]   drained: it restarts" in cut]
    run = resume(site, **settings(target))
    assert run.status == 0, run.output
    assert restarted
    assert not [name for name in restarted if f"[{name}] switch NVIDIA's driver" in run.output], run.output
    assert_both_serve_with(site, target)


@pytest.mark.usefixtures("_domain_is_up")
def test_a_member_that_stays_away_is_named_and_both_are_proven_later(site: Site) -> None:
    head, member = site.lab.hosts
    target, _ = staged_other(site)
    member.run("systemctl mask ssh")
    try:
        run = switch(site, target, "--timeout", "30")
    finally:
        member.run("systemctl unmask ssh; systemctl start ssh")
    assert run.status == 4, run.output
    refusal(run.output, "RW0636", member.name)
    assert modules(site) == [target, target], "none goes back alone, nor with one away"
    run = resume(site, **settings(target))
    assert run.status == 0, run.output
    assert_both_serve_with(site, target)
    assert ask(head) == "42"


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


@pytest.mark.usefixtures("_domain_is_up")
def test_a_mixed_rack_is_named_and_a_switch_makes_it_one_again(site: Site) -> None:
    head, member = site.lab.hosts
    assert len(set(modules(site))) == 2, "after the test above"
    wanted = settings(modules(site)[1])
    deploy(site, "-y", **wanted)
    run = rackwright(site, "rollout", *SWITCH, **wanted, hardware={"rack": "r1"})
    assert run.status == 0, run.output
    named = next(row for row in run.output.splitlines() if texts.SEVERAL_DRIVERS.format(rack="r1") in row)
    assert head.name in named
    assert member.name in named
    assert len(set(modules(site))) == 1
    wait_until_one_release_serves(site)
