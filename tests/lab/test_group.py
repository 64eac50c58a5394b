"""One endpoint over two hosts, with a stand-in of vLLM that starts real processes by its flags: they live as one.

The tests are one story, in this order.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests.lab.conftest import BIN, ROOT, Run, Site
from tests.lab.fleets import proven, running
from tests.lab.products import in_proof

pytestmark = pytest.mark.lab

INVENTORY = ROOT / "tests" / "lab" / "group" / "inventory.py"
ASK = (
    "curl -sS --max-time 20 -H 'Content-Type: application/json' -d @- http://127.0.0.1:8000/v1/chat/completions",
    {"messages": [{"role": "user", "content": "What is 17 + 25? Answer with the number only."}], "max_tokens": 512},
)
SECONDS = 120
"""How long a group may take to serve again: its stand-in loads in seconds, and a restart waits for two."""


def _run(site: Site, settings: dict[str, Any], *words: str | object) -> Run:
    return site.command("env", f"GROUP_SETTINGS={json.dumps(settings)}", *map(str, words))


def deploy(site: Site, *options: str, **settings: Any) -> Run:
    return _run(site, settings, BIN / "pyinfra", INVENTORY, "deploy.py", *(options or ("-y",)))


def rackwright(site: Site, verb: str, *options: str, **settings: Any) -> Run:
    return _run(site, settings, BIN / "rackwright", verb, INVENTORY, *options)


def ask(host: Host) -> str:
    line, body = ASK
    answer = host.run(line, stdin=json.dumps({**body, "model": "gpt-oss-120b"}), check=False).stdout
    try:
        return str(json.loads(answer)["choices"][0]["message"]["content"])
    except (ValueError, KeyError):
        return answer


def started(host: Host) -> str:
    return host.run("docker inspect --format '{{.State.StartedAt}}' rackwright-llm", check=False).stdout.strip()


def state(host: Host) -> str:
    return host.run("systemctl is-active rackwright-llm", check=False).stdout.strip()


def wait_until_all_serve(site: Site, before: list[str]) -> None:
    """Until every member runs another container than before, and the head answers."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        now = [started(host) for host in site.lab.hosts]
        if all(now) and not set(now) & set(before) and all(state(host) == "active" for host in site.lab.hosts):
            assert ask(site.lab.hosts[0]) == "42"
            return
        time.sleep(1)
    pytest.fail(f"they do not serve again after {SECONDS} s: {[state(host) for host in site.lab.hosts]}")


@pytest.fixture(scope="module", autouse=True)
def hosts_of_its_own(worker_lab: Lab) -> Iterator[None]:
    """What one host served alone, or two together, is in the way of the other."""
    reset(worker_lab)
    yield
    reset(worker_lab)


def reset(lab: Lab) -> None:
    for host in lab.hosts:
        host.reset()


def test_two_hosts_serve_one_model(site: Site) -> None:
    run = deploy(site)
    assert run.status == 0, run.output
    head, member = site.lab.hosts
    assert ask(head) == "42"
    assert len(set(proven(site.lab.hosts))) == 1
    assert running(site.lab.hosts) == proven(site.lab.hosts)
    assert "--headless" in member.run("docker inspect --format '{{.Args}}' rackwright-llm").stdout
    assert "--headless" not in head.run("docker inspect --format '{{.Args}}' rackwright-llm").stdout
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
    site.lab.hosts[-1].run("kill -9 $(docker inspect --format '{{.State.Pid}}' rackwright-llm)")
    wait_until_all_serve(site, before)


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
