"""One endpoint over two hosts by TensorRT-LLM: real mpirun in the head's container, which starts ranks on the other host.

Its launch agent is SSH between the hosts, by keys of this start alone. What a group does whatever its engine is,
test_group.py sees with vLLM. The tests are one story, in this order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests.lab.conftest import Site
from tests.lab.fleets import proven, running
from tests.lab.group.serving import ask, deploy, kill, rackwright, reset, started, wait_until_all_serve, words_of

pytestmark = pytest.mark.lab

HERE = "/run/rackwright/groups/llm"


def settings(**engine: Any) -> dict[str, Any]:
    """Two GPUs of each host: four ranks."""
    engine = {"tensor_parallel_size": 4, "moe_expert_parallel_size": 4, **engine}
    return {"profile": "b200_stable", "gpus": [0, 1], "engine": engine}


@pytest.fixture(scope="module", autouse=True)
def hosts_of_its_own(worker_lab: Lab) -> Iterator[None]:
    """What one host served alone, or two together, is in the way of the other."""
    reset(worker_lab)
    yield
    reset(worker_lab)


def log(host: Host) -> str:
    return host.run("journalctl -u rackwright-llm --no-pager --output cat").stdout


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
