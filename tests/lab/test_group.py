"""One endpoint over two hosts, with a stand-in of vLLM that starts real processes by its flags: they live as one.

The tests are one story, in this order.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from rackwright_lab.lab import Lab
from tests.lab.conftest import Site
from tests.lab.fleets import HOME, proven, running
from tests.lab.group.serving import (
    ask,
    deploy,
    kill,
    rackwright,
    reset,
    started,
    state,
    wait_until_all_serve,
    wait_until_one_release_serves,
    words_of,
)
from tests.lab.products import in_proof

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module", autouse=True)
def hosts_of_its_own(worker_lab: Lab) -> Iterator[None]:
    """What one host served alone, or two together, is in the way of the other."""
    reset(worker_lab)
    yield
    reset(worker_lab)


def test_two_hosts_serve_one_model(site: Site) -> None:
    run = deploy(site)
    assert run.status == 0, run.output
    head, member = site.lab.hosts
    assert ask(head) == "42"
    assert len(set(proven(site.lab.hosts))) == 1
    assert running(site.lab.hosts) == proven(site.lab.hosts)
    assert "--headless" in words_of(member)
    assert "--headless" not in words_of(head)
    assert [state(host) for host in site.lab.hosts] == ["active", "active"]
    status = rackwright(site, "status")
    assert status.output.count(" serving ") == 2, status.output
    assert deploy(site).changed == []


def test_half_of_them_is_refused_with_the_right_limit(site: Site) -> None:
    head, member = site.lab.hosts
    run = deploy(site, "-y", "--limit", member.name)
    assert run.status != 0
    assert f"--limit {head.name} --limit {member.name}" in run.output


def test_a_good_change_goes_through_on_all_of_them(site: Site) -> None:
    before = proven(site.lab.hosts)
    run = rackwright(site, "rollout", "-y", engine={"tensor-parallel-size": 16, "max-num-seqs": 8})
    assert run.status == 0, run.output
    assert not set(proven(site.lab.hosts)) & set(before)
    assert running(site.lab.hosts) == proven(site.lab.hosts)
    assert ask(site.lab.hosts[0]) == "42"


def test_a_bad_change_rolls_back_on_all_of_them(site: Site) -> None:
    before = proven(site.lab.hosts)
    for host in site.lab.hosts:
        host.set_engine_faults({"fault": "repeat_bang", "when": {"option.max_num_seqs": 9}})
    run = rackwright(site, "rollout", "-y", engine={"tensor-parallel-size": 16, "max-num-seqs": 9})
    assert run.status == 3, run.output
    assert running(site.lab.hosts) == proven(site.lab.hosts) == before
    assert ask(site.lab.hosts[0]) == "42"


def test_a_member_that_dies_takes_all_of_them_with_it_and_they_come_back(site: Site) -> None:
    before = [started(host) for host in site.lab.hosts]
    kill(site.lab.hosts[-1])
    wait_until_all_serve(site, before)


@in_proof("a member that dies shows the lines at work, and its head ends the same way")
def test_a_head_that_dies_takes_all_of_them_with_it_and_they_come_back(site: Site) -> None:
    before = [started(host) for host in site.lab.hosts]
    kill(site.lab.hosts[0])
    wait_until_all_serve(site, before)


def test_a_full_disk_on_a_member_leaves_all_of_them_serving(site: Site) -> None:
    before, containers = proven(site.lab.hosts), [started(host) for host in site.lab.hosts]
    member = site.lab.hosts[-1]
    member.run(f"mount -t tmpfs -o size=4k,nr_inodes=1 small {HOME}/releases")
    try:
        run = deploy(site, engine={"tensor-parallel-size": 16, "max-num-seqs": 21})
    finally:
        member.run(f"umount {HOME}/releases")
    assert run.status != 0
    assert "No space left on device" in run.output
    assert proven(site.lab.hosts) == before
    assert [started(host) for host in site.lab.hosts] == containers
    assert ask(site.lab.hosts[0]) == "42"


def test_nothing_is_switched_while_a_member_is_cut_off_and_all_serve_again_afterwards(site: Site) -> None:
    before = proven(site.lab.hosts)
    head, member = site.lab.hosts
    cut = f"INPUT -s {head.address} -j DROP"
    member.run(f"iptables -I {cut}")
    try:
        run = deploy(site, engine={"tensor-parallel-size": 16, "max-num-seqs": 22})
    finally:
        member.run(f"iptables -D {cut}")
    assert run.status != 0
    assert f"{member.name} ({member.address}) does not answer" in run.output
    assert "RW3170" in run.output
    assert proven(site.lab.hosts) == before
    wait_until_one_release_serves(site)


@in_proof("a member that dies shows the lines at work; that a pause is no end is told by their grace alone")
def test_a_line_that_is_cut_for_a_moment_restarts_nothing(site: Site) -> None:
    before = [started(host) for host in site.lab.hosts]
    head, member = site.lab.hosts
    member.run(f"iptables -I INPUT -s {head.address} -j DROP; sleep 5; iptables -D INPUT -s {head.address} -j DROP")
    time.sleep(5)
    assert [started(host) for host in site.lab.hosts] == before
    assert ask(head) == "42"


@in_proof("a member that dies shows that all start together; a reboot takes half a minute more")
def test_the_head_comes_back_after_a_reboot_and_all_serve(site: Site) -> None:
    before = [started(host) for host in site.lab.hosts]
    site.lab.hosts[0].reboot()
    wait_until_all_serve(site, before)
