"""One endpoint over two hosts lives as one: a server, a host or a line that ends, ends all of it, and all returns.

Each member holds a line to the head; the hosts themselves do it, whatever the engine is. It is a stand-in of vLLM here.
"""

from __future__ import annotations

import time

import pytest

from tests.lab.conftest import Site
from tests.lab.fleets import proven
from tests.lab.group.serving import (
    ask,
    begin_rollout,
    cut_off,
    deploy,
    kill,
    prepare,
    running_releases,
    started,
    state,
    wait_for,
    wait_until_all_serve,
    wait_until_one_release_serves,
)
from tests.lab.products import in_proof

pytestmark = pytest.mark.lab


@pytest.fixture(autouse=True)
def _served(site: Site, request: pytest.FixtureRequest) -> None:
    prepare(site, request)


def test_a_member_that_dies_takes_all_of_them_with_it_and_they_come_back(site: Site) -> None:
    before = [started(host) for host in site.lab.hosts]
    kill(site.lab.hosts[-1])
    wait_until_all_serve(site, before)


@in_proof("a member that dies is above, and a head that reboots below takes all of them with it")
def test_a_head_that_dies_takes_all_of_them_with_it_and_they_come_back(site: Site) -> None:
    before = [started(host) for host in site.lab.hosts]
    kill(site.lab.hosts[0])
    wait_until_all_serve(site, before)


def test_a_line_that_is_cut_for_a_moment_restarts_nothing(site: Site) -> None:
    before = [started(host) for host in site.lab.hosts]
    head, member = site.lab.hosts
    member.run(f"iptables -I INPUT -s {head.address} -j DROP; sleep 5; iptables -D INPUT -s {head.address} -j DROP")
    time.sleep(5)
    assert [started(host) for host in site.lab.hosts] == before
    assert ask(head) == "42"


def test_the_head_comes_back_after_a_reboot_and_all_serve(site: Site) -> None:
    before = [started(host) for host in site.lab.hosts]
    site.lab.hosts[0].reboot()
    wait_until_all_serve(site, before)


@in_proof("the head reboots above, a member dies, and test_group_maintenance.py restarts both")
def test_a_member_that_reboots_comes_back_and_all_serve(site: Site) -> None:
    before = [started(host) for host in site.lab.hosts]
    site.lab.hosts[-1].reboot()
    wait_until_all_serve(site, before)


def test_a_line_that_is_cut_for_good_stops_all_and_they_start_together_when_it_is_back(site: Site) -> None:
    before = [started(host) for host in site.lab.hosts]
    head, member = site.lab.hosts
    with cut_off(member, head):
        assert wait_for(lambda: state(head) == "activating", 90), "no token comes, so all stop"
        assert "no token comes; all stop" in head.journal("--unit", "rackwright-llm", "--lines", "200")
        assert wait_for(lambda: state(member) == "activating", 90)
    wait_until_all_serve(site, before)


@in_proof(
    "minutes of the group's own time-outs: the one before sees a line that is cut for good, and test_blame.py a switch "
    "that needs hands"
)
def test_a_line_that_is_cut_in_a_switch_and_stays_so_needs_hands_and_says_which(site: Site) -> None:
    assert deploy(site).status == 0, "here it is the first of its file"
    before = proven(site.lab.hosts)
    head, member = site.lab.hosts
    settings = {"load_timeout": 30, "engine": {"tensor-parallel-size": 16, "max-num-seqs": 31}}
    running = begin_rollout(site, **settings)
    try:
        assert running.until("switching to release") is not None
        with cut_off(member, head):
            assert running.end().status == 4, running.output
            assert f"it waits for rank 1 ({member.address}): it has not called" in running.output
            assert f"manual action needed on {head.name}, {member.name}" in running.output
            assert f"do ping -c 3 -I {head.address}" in running.output
            assert "active" not in [state(host) for host in site.lab.hosts]
        wait_until_one_release_serves(site)
    finally:
        running.stop()
    assert running_releases(site) == proven(site.lab.hosts) == before
