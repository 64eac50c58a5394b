"""A real vLLM over two booted hosts, tensor parallel 2: from a bare OS to an answer, a good change, a rank that dies.

The tests are one story, in this order.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.lab.conftest import BIN, ROOT, Run, Site
from tests.lab.fleets import proven, running
from tests.real.test_vllm import SECONDS, ask, started

pytestmark = pytest.mark.lab

INVENTORY = ROOT / "tests" / "real" / "group_inventory.py"


def command(site: Site, *words: object, **engine: Any) -> Run:
    return site.command("env", f"GROUP_ENGINE={json.dumps(engine)}", *map(str, words))


def test_a_real_engine_serves_one_model_from_two_hosts(site: Site) -> None:
    run = command(site, BIN / "pyinfra", INVENTORY, "deploy.py", "-y")
    assert run.status == 0, run.output
    assert ask(site.lab.hosts[0]) == "42"
    assert running(site.lab.hosts) == proven(site.lab.hosts)
    assert len(set(proven(site.lab.hosts))) == 1


def test_a_good_change_goes_through_on_both(site: Site) -> None:
    before = proven(site.lab.hosts)
    run = command(site, BIN / "rackwright", "rollout", INVENTORY, "-y", "--bake", "1", **{"max-num-seqs": 8})
    assert run.status == 0, run.output
    assert not set(before) & set(proven(site.lab.hosts))
    assert ask(site.lab.hosts[0]) == "42"


def test_a_rank_that_is_killed_brings_both_down_and_back(site: Site) -> None:
    before = [started(host) for host in site.lab.hosts]
    site.lab.hosts[-1].run("kill -9 $(docker inspect --format '{{.State.Pid}}' rackwright-llm)")
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        now = [started(host) for host in site.lab.hosts]
        active = [host.run("systemctl is-active rackwright-llm", check=False).stdout.strip() for host in site.lab.hosts]
        if all(now) and not set(now) & set(before) and active == ["active", "active"]:
            assert ask(site.lab.hosts[0]) == "42"
            return
        time.sleep(1)
    pytest.fail(f"they do not serve again after {SECONDS} s")
