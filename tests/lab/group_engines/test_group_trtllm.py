"""One endpoint over two hosts by TensorRT-LLM: real mpirun in the head's container starts ranks on the other host.

Its launch agent is SSH between the hosts, by keys of this start alone. What a group does whatever its engine is,
test_group.py sees with vLLM. The tests are one story, in this order.
"""

from __future__ import annotations

import re
import shlex
import time
from typing import Any

import pytest

from rackwright_lab.hosts.host import Host
from tests import texts
from tests.lab.conftest import Site
from tests.lab.fleets import proven, running
from tests.lab.group.serving import (
    ask,
    cut_off,
    deploy,
    kill,
    prepare,
    rackwright,
    started,
    state,
    wait_for,
    wait_until_all_serve,
    words_of,
)
from tests.lab.products import in_proof

pytestmark = pytest.mark.lab

whatever_the_engine = in_proof(
    "test_group_lifeline.py sees it with vLLM: the hosts themselves do it, whatever the engine is"
)
HERE = "/run/rackwright/groups/llm"
SERVER = "trtllm-serve"
ASKS = "GET /health HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n"
READ_TO_THE_END = f"exec 3<>/dev/tcp/127.0.0.1/8000; printf '{ASKS}' >&3; cat <&3"
"""A client that closes last: curl would close as soon as it has the answer, and then the server's port is free."""


def settings(**engine: Any) -> dict[str, Any]:
    """Two GPUs of each host: four ranks."""
    engine = {"tensor_parallel_size": 4, "moe_expert_parallel_size": 4, **engine}
    return {"profile": "b200_stable", "gpus": [0, 1], "engine": engine}


@pytest.fixture(autouse=True)
def _served(site: Site, request: pytest.FixtureRequest) -> None:
    prepare(site, request, **settings())


def log(host: Host) -> str:
    return host.run("journalctl -u rackwright-llm --no-pager --output cat").stdout


def come_in(site: Site, words: str) -> str:
    """Log in at a member from the head by SSH as mpirun does, with these words, and return the output."""
    head, member = site.lab.hosts
    known_hosts = f"-o UserKnownHostsFile={HERE}/known_hosts -o StrictHostKeyChecking=yes -o BatchMode=yes"
    command = f"ssh -F none -p 29500 -i {HERE}/key {known_hosts} root@{member.address} {shlex.quote(words)} 2>&1"
    return head.run(command, check=False).stdout.strip()


def listening(host: Host) -> list[str]:
    """Ports of the group's own, or of its ranks, at which anything listens on a host."""
    ports = host.run("ss -Hltn").stdout
    return [port for port in re.findall(r":(\d+)\s", ports) if 29500 <= int(port) <= 29631]


def test_two_hosts_serve_one_model(site: Site) -> None:
    run = deploy(site, **settings())
    assert run.status == 0, run.output
    head, member = site.lab.hosts
    assert ask(head) == "42"
    assert len(set(proven(site.lab.hosts))) == 1
    assert running(site.lab.hosts) == proven(site.lab.hosts)
    assert "first-process 0 " in words_of(head)
    assert "first-process 1 " in words_of(member)
    for rank, host in enumerate((head, head, member, member)):
        assert f"rank {rank} is on {host.name}, GPU {rank % 2} of 2" in log(head)
    assert deploy(site, **settings()).changed == []


def test_the_heads_key_starts_ranks_and_nothing_else(site: Site) -> None:
    head, member = site.lab.hosts
    for other in ("id", "orted -mca ess $(id)"):
        assert come_in(site, other) == f"refused: {texts.NOT_ORTED}"
    elsewhere = f"orted -mca orte_hnp_uri 1.0;tcp://{member.address}:29502"
    assert come_in(site, elsewhere) == f"refused: it does not call {head.address} back"
    named = f"orted -mca orte_hnp_uri 1.0;tcp://{head.address}:29502 -mca mca_base_component_path /scratch"
    assert come_in(site, named) == f"refused: {texts.NAMES_FILES}"
    assert head.run("stat -c %a:%U /run/rackwright/groups/llm/key").stdout.strip() == "600:root"
    assert head.run(f"docker exec rackwright-llm grep -rl PRIVATE {HERE} /root /scratch", check=False).stdout == ""


def test_a_member_that_dies_takes_all_of_them_with_it_and_they_come_back_with_new_keys(site: Site) -> None:
    before = [started(host) for host in site.lab.hosts]
    keys = [host.run(f"cat {HERE}/key.pub").stdout for host in site.lab.hosts]
    kill(site.lab.hosts[-1])
    wait_until_all_serve(site, before)
    assert not set(keys) & {host.run(f"cat {HERE}/key.pub").stdout for host in site.lab.hosts}


@whatever_the_engine
def test_a_head_that_dies_takes_all_of_them_with_it_and_they_come_back(site: Site) -> None:
    before = [started(host) for host in site.lab.hosts]
    kill(site.lab.hosts[0])
    wait_until_all_serve(site, before)


@whatever_the_engine
@pytest.mark.parametrize("which", [0, -1], ids=["head", "member"])
def test_one_that_reboots_comes_back_and_all_serve(site: Site, which: int) -> None:
    before = [started(host) for host in site.lab.hosts]
    site.lab.hosts[which].reboot()
    wait_until_all_serve(site, before)


@whatever_the_engine
def test_a_line_that_is_cut_for_a_moment_restarts_nothing(site: Site) -> None:
    before = [started(host) for host in site.lab.hosts]
    head, member = site.lab.hosts
    with cut_off(member, head):
        time.sleep(5)
    time.sleep(5)
    assert [started(host) for host in site.lab.hosts] == before
    assert ask(head) == "42"


@whatever_the_engine
def test_a_line_that_is_cut_for_good_stops_all_and_they_start_together_when_it_is_back(site: Site) -> None:
    before = [started(host) for host in site.lab.hosts]
    head, member = site.lab.hosts
    with cut_off(member, head):
        assert wait_for(lambda: state(head) != "active", 120), "no token comes, so all stop"
        assert wait_for(lambda: state(member) != "active", 120)
    wait_until_all_serve(site, before)


def test_a_server_that_dies_beside_its_ranks_takes_all_of_them_with_it_and_they_come_back(site: Site) -> None:
    """Its launcher outlives it, and so do the ranks: mpirun alone would wait for good."""
    before, head = [started(host) for host in site.lab.hosts], site.lab.hosts[0]
    head.run(f"pkill -KILL -x {SERVER}")
    wait_until_all_serve(site, before)
    assert f"{SERVER} ended with status 137" in log(head)


@in_proof("a server that dies is above, and test_group.py has a bad change that rolls back on all of them")
def test_a_server_that_dies_at_the_end_of_its_load_rolls_back_on_all_of_them(site: Site) -> None:
    before = proven(site.lab.hosts)
    for host in site.lab.hosts:
        host.set_engine_faults({"fault": "die_at_end_of_load", "when": {"option.max_batch_size": 9}})
    run = rackwright(site, "rollout", "-y", **settings(max_batch_size=9))
    assert run.status == 3, run.output
    assert f"{SERVER} ended with status 1" in run.output
    assert running(site.lab.hosts) == proven(site.lab.hosts) == before
    assert ask(site.lab.hosts[0]) == "42"


@in_proof("tests/programs/test_standin_listen.py")
def test_connections_that_wait_at_its_port_do_not_kill_the_next_server(site: Site) -> None:
    """The server is the one that closes them, as with every client that asks for it; trtllm-serve cannot bind then."""
    head, before = site.lab.hosts[0], [started(host) for host in site.lab.hosts]
    head.run(f"bash -c {shlex.quote(READ_TO_THE_END)}")
    assert head.run("ss -Htan state time-wait 'sport = :8000'").stdout
    # systemd counts this start too, and the story's others may have used up what it allows in an hour.
    head.run("systemctl reset-failed rackwright-llm; systemctl restart --no-block rackwright-llm")
    wait_until_all_serve(site, before)
    assert "Failed to bind" not in log(head)


def test_a_teardown_leaves_no_key_and_no_door(site: Site) -> None:
    assert listening(site.lab.hosts[1])
    names = [argument for host in site.lab.hosts for argument in ("--limit", host.name)]
    run = rackwright(site, "teardown", "-y", *names, **settings())
    assert run.status == 0, run.output
    for host in site.lab.hosts:
        assert listening(host) == []
        assert host.run("ls /run/rackwright/groups", check=False).stdout == ""
        assert host.run("ls /etc/systemd/system/rackwright-llm*", check=False).stdout == ""
