"""A real vLLM over two booted hosts, tensor parallel 2: an answer, changes, and every way to lose one of them.

The tests are one story, in this order.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.lab.conftest import BIN, ROOT, Run, Site
from tests.lab.fleets import proven, running
from tests.lab.group.serving import boot, cut_off, kill, state, wait_for
from tests.real.test_vllm import PATIENCE, SECONDS, ask, revision, started

pytestmark = pytest.mark.lab

INVENTORY = ROOT / "tests" / "real" / "group_inventory.py"
AT_ONCE = 8
"""Requests at once that the good change asks for; what follows asks for the same, so that nothing else changes."""


def command(site: Site, *words: object, **settings: Any) -> Run:
    return site.command("env", f"GROUP_SETTINGS={json.dumps(settings)}", *map(str, words), timeout=PATIENCE)


def rollout(site: Site, **settings: Any) -> Run:
    words = (BIN / "rackwright", "rollout", INVENTORY, "-y", "--bake", "1")
    return command(site, *words, engine={"max-num-seqs": AT_ONCE}, **settings)


@pytest.fixture(autouse=True)
def _all_starts_left(site: Site) -> None:
    """Three deaths within the limit's interval are the product's own end; these tests cause one each."""
    for host in site.lab.hosts:
        host.run("systemctl reset-failed rackwright-llm.service", check=False)


def starts(site: Site) -> list[str]:
    """When each member's container was started."""
    return [started(host) for host in site.lab.hosts]


def wait_until_both_serve(site: Site, before: list[str]) -> None:
    """Until both members run another container than before, and the head answers."""

    def serve() -> bool:
        now = starts(site)
        return all(now) and not set(now) & set(before) and [state(host) for host in site.lab.hosts] == ["active"] * 2

    assert wait_for(serve, SECONDS), f"they do not serve again after {SECONDS} s"
    assert ask(site.lab.hosts[0]) == "42"


def take_away_what_each_serves_by_itself(site: Site) -> None:
    """As the refusal of the switch to a group says. A fresh host has no record, and teardown would ask for one."""
    if any(state(host) == "active" for host in site.lab.hosts):
        run = command(site, BIN / "rackwright", "teardown", INVENTORY, "--all", "-y")
        assert run.status == 0, run.output


def test_a_real_engine_serves_one_model_from_two_hosts(site: Site) -> None:
    take_away_what_each_serves_by_itself(site)
    run = command(site, BIN / "pyinfra", INVENTORY, "deploy.py", "-y", "--data", "gate.level=full")
    assert run.status == 0, run.output
    assert ask(site.lab.hosts[0]) == "42"
    assert running(site.lab.hosts) == proven(site.lab.hosts)
    assert len(set(proven(site.lab.hosts))) == 1
    assert command(site, BIN / "pyinfra", INVENTORY, "deploy.py", "-y").changed == []


def test_a_good_change_goes_through_on_both(site: Site) -> None:
    before = proven(site.lab.hosts)
    run = rollout(site)
    assert run.status == 0, run.output
    assert not set(before) & set(proven(site.lab.hosts))
    assert ask(site.lab.hosts[0]) == "42"


def test_a_model_that_repeats_itself_rolls_back_on_both(site: Site) -> None:
    before = proven(site.lab.hosts)
    run = rollout(site, model=revision("v3"))
    assert run.status == 3, run.output
    assert "refused: a chat answer" in run.output
    assert running(site.lab.hosts) == proven(site.lab.hosts) == before
    assert ask(site.lab.hosts[0]) == "42"


@pytest.mark.parametrize("rank", [1, 0], ids=["member", "head"])
def test_a_rank_that_is_killed_brings_both_down_and_back(site: Site, rank: int) -> None:
    before = starts(site)
    kill(site.lab.hosts[rank])
    wait_until_both_serve(site, before)


def test_a_line_that_is_cut_for_a_moment_restarts_nothing(site: Site) -> None:
    before = starts(site)
    head, member = site.lab.hosts
    with cut_off(member, head):
        time.sleep(5)
    time.sleep(20)
    assert starts(site) == before
    assert ask(head) == "42"


def test_a_line_that_is_cut_for_good_stops_both_and_they_start_together_when_it_is_back(site: Site) -> None:
    before = starts(site)
    head, member = site.lab.hosts
    with cut_off(member, head):
        assert wait_for(lambda: state(head) == "activating", 120), "no token comes, so both stop"
        assert wait_for(lambda: state(member) == "activating", 120)
    wait_until_both_serve(site, before)


def test_a_member_that_reboots_comes_back_and_both_serve(site: Site) -> None:
    before, member = starts(site), site.lab.hosts[-1]
    since = boot(member)
    member.reboot()
    assert boot(member) != since
    wait_until_both_serve(site, before)
