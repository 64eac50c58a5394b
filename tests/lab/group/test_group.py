"""One endpoint over two hosts, with a stand-in of vLLM that starts real processes by its flags: deployed and changed.

The tests are one story, in this order.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from rackwright_lab.hosts.host import Host
from tests.lab.conftest import Site
from tests.lab.fleets import HOME, proven, running
from tests.lab.group.serving import (
    ask,
    deploy,
    prepare,
    rackwright,
    running_releases,
    started,
    state,
    wait_until_one_release_serves,
    words_of,
)
from tests.lab.products import in_proof
from tests.refused import refusal

pytestmark = pytest.mark.lab


@pytest.fixture(autouse=True)
def _served(site: Site, request: pytest.FixtureRequest) -> None:
    prepare(site, request)


HEAR = """
import socket, sys
heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
heard.bind((sys.argv[1], int(sys.argv[2])))
heard.settimeout(float(sys.argv[3]))
print("listening", flush=True)
try:
    print(heard.recv(100).decode().strip())
except TimeoutError:
    print()
"""
"""Hosts of the lab have no Python: it runs in their network alone."""


@contextmanager
def listening(host: Host, port: int, seconds: int) -> Iterator[Callable[[], str]]:
    """Listen by UDP on a host; what is heard within so many seconds, in which a busy machine must come to send it."""
    words = ["nsenter", "--target", str(host.machine.leader()), "--net", sys.executable, "-c", HEAR]
    with subprocess.Popen(
        [*words, host.address, str(port), str(seconds)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"
        stdout = process.stdout
        yield lambda: stdout.readline().strip()
        process.wait(timeout=10)


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


def test_a_member_hears_the_others_by_udp_past_a_rule_that_closes_the_host(site: Site) -> None:
    head, member = site.lab.hosts
    closed = "INPUT -p udp --dport 40000:40009 -j DROP"
    member.run(f"iptables -A {closed}")
    try:
        with listening(member, 40001, 30) as heard:
            head.run(f"bash -c 'echo from the head >/dev/udp/{member.address}/40001'")
            assert heard() == "from the head"
        with listening(member, 40002, 3) as heard, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outsider:
            outsider.sendto(b"from elsewhere", (member.address, 40002))
            assert heard() == ""
    finally:
        member.run(f"iptables -D {closed}")


def test_half_of_them_is_refused_with_the_right_limit(site: Site) -> None:
    head, member = site.lab.hosts
    run = deploy(site, "-y", "--limit", member.name)
    assert run.status != 0
    assert f"--limit {head.name} --limit {member.name}" in run.output
    for verb in ("teardown", "reboot"):
        half = rackwright(site, verb, "-y", "--limit", member.name)
        assert half.status == 1
        assert "RW1330" in half.output
        assert f"--limit {head.name} --limit {member.name}" in half.output
        assert "the record of this run" not in half.output, "nothing was begun"


def test_a_question_goes_to_the_head_alone(site: Site) -> None:
    head, member = site.lab.hosts
    run = rackwright(site, "chat", "--", "What is 17 + 25? Answer with the number only.")
    assert run.status == 0, run.output
    assert f"{head.name} llm: 42" in run.output
    assert f"{member.name} llm: {head.name} answers for it" in run.output


@in_proof("a change that is resumed goes through on all of them in test_group_maintenance.py")
def test_a_good_change_goes_through_on_all_of_them(site: Site) -> None:
    before = proven(site.lab.hosts)
    run = rackwright(site, "rollout", "-y", engine={"tensor-parallel-size": 16, "max-num-seqs": 8})
    assert run.status == 0, run.output
    assert not set(proven(site.lab.hosts)) & set(before)
    assert running(site.lab.hosts) == proven(site.lab.hosts)
    assert ask(site.lab.hosts[0]) == "42"


@in_proof("tests/unit/test_firewall.py has the rules of what serves; a host alone moves in tests/lab/test_firewall.py")
def test_a_port_that_is_left_is_closed_on_all_of_them_by_the_same_run(site: Site) -> None:
    """Without allow_from the head answers itself alone, so the rules of the address before go everywhere."""
    run = deploy(site, allow_from=None)
    assert run.status == 0, run.output
    assert ask(site.lab.hosts[0]) == "42"
    assert deploy(site, allow_from=None).changed == []
    assert deploy(site).status == 0


@in_proof("tests/unit/test_group.py has which endpoints; tests/unit/test_preflight.py what is said")
def test_another_order_is_refused_before_anything_is_written(site: Site) -> None:
    reading = "cat /etc/rackwright/firewall /etc/rackwright/watched/* 2>/dev/null"
    before = [host.run(reading, check=False).stdout for host in site.lab.hosts]
    run = deploy(site, turned=True)
    assert run.status == 1, run.output
    refusal(run.output, "RW3191", "llm")
    assert "rackwright resume" not in run.output
    assert [host.run(reading, check=False).stdout for host in site.lab.hosts] == before
    assert deploy(site).changed == []


def test_a_bad_change_rolls_back_on_all_of_them(site: Site) -> None:
    before = proven(site.lab.hosts)
    for host in site.lab.hosts:
        host.set_engine_faults({"fault": "repeat_bang", "when": {"option.max_num_seqs": 9}})
    run = rackwright(site, "rollout", "-y", engine={"tensor-parallel-size": 16, "max-num-seqs": 9})
    assert run.status == 3, run.output
    assert running(site.lab.hosts) == proven(site.lab.hosts) == before
    assert ask(site.lab.hosts[0]) == "42"


def test_a_full_disk_on_a_member_leaves_all_of_them_serving(site: Site) -> None:
    before, containers = proven(site.lab.hosts), [started(host) for host in site.lab.hosts]
    member = site.lab.hosts[-1]
    member.run(f"mount -t tmpfs -o size=4k,nr_inodes=1 small {HOME}/releases")
    try:
        run = deploy(site, engine={"tensor-parallel-size": 16, "max-num-seqs": 21})
    finally:
        member.run(f"umount {HOME}/releases")
    assert run.status != 0
    assert "RW0729: " in run.output
    assert proven(site.lab.hosts) == before
    assert [started(host) for host in site.lab.hosts] == containers
    assert ask(site.lab.hosts[0]) == "42"


@in_proof("tests/unit/test_start_again.py has who is asked; tests/unit/test_can_start.py has what for")
def test_a_member_that_could_not_start_again_leaves_all_of_them_serving(site: Site) -> None:
    member, program = site.lab.hosts[1], "/usr/bin/nvidia-container-runtime"
    before, began = running_releases(site), [started(host) for host in site.lab.hosts]
    member.run(f"mv {program} {program}.away")
    try:
        run = deploy(site, engine={"tensor-parallel-size": 16, "max-num-seqs": 9})
    finally:
        member.run(f"mv {program}.away {program}")
    assert run.status == 1, run.output
    assert "RW1112" in run.output
    assert (running_releases(site), [started(host) for host in site.lab.hosts]) == (before, began)


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
