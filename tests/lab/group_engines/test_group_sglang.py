"""One endpoint over two hosts by SGLang's own flags, with a stand-in that starts real processes: they live as one.

What a group does whatever its engine is, test_group.py sees with vLLM. The tests are one story, in this order.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.conftest import Site
from tests.lab.fleets import proven, running
from tests.lab.group.serving import ask, deploy, kill, started, state, wait_until_all_serve, words_of
from tests.lab.products import in_proof

pytestmark = pytest.mark.lab

PROFILE: dict[str, Any] = {"profile": "rtx_pro_6000_sglang", "accept_known_bad": True}
STATUS = "curl -s --max-time 5 -o /dev/null -w '%{http_code}' "


def test_members_that_a_stranger_reaches_are_refused(site: Site) -> None:
    """Without firewall() the lifeline's port answers this machine; what serves is left as it is."""
    run = deploy(site, script="tests/lab/group/deploy_open.py", allow_from=None, **PROFILE)
    assert run.status != 0
    head = site.lab.hosts[0]
    assert f"closed to non-members: {head.name} {head.address}:29501 answers this machine" in run.output
    assert "RW2440" in run.output
    assert ask(head) == "42"


def test_two_hosts_serve_one_model(site: Site) -> None:
    run = deploy(site, **PROFILE)
    assert run.status == 0, run.output
    head, member = site.lab.hosts
    assert ask(head) == "42"
    assert len(set(proven(site.lab.hosts))) == 1
    assert running(site.lab.hosts) == proven(site.lab.hosts)
    assert f"--node-rank 1 --dist-init-addr {head.address}:29500 --host=127.0.0.1" in words_of(member)
    assert "--host=127.0.0.1" not in words_of(head)
    assert deploy(site, **PROFILE).changed == []


def test_a_member_answers_health_to_its_own_host_alone(site: Site) -> None:
    head, member = site.lab.hosts
    assert member.run(f"{STATUS} http://127.0.0.1:8000/health").stdout == "200"
    assert head.run(f"{STATUS} http://{member.address}:8000/health", check=False).stdout == "000"
    assert [state(host) for host in site.lab.hosts] == ["active", "active"]


@in_proof("test_group_lifeline.py sees it with vLLM: the hosts themselves do it, whatever the engine is")
def test_a_member_that_dies_takes_all_of_them_with_it_and_they_come_back(site: Site) -> None:
    before = [started(host) for host in site.lab.hosts]
    kill(site.lab.hosts[-1])
    wait_until_all_serve(site, before)
