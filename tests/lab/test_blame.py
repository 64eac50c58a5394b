"""Whose fault a failed rollout was, and what `resume` makes of it, on three hosts that serve."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests.lab.conftest import BIN, Site
from tests.lab.fleets import assert_all_serve, begin, proven, rollout, switches, three_hosts, words
from tests.lab.running import Running

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def fleet(worker_lab: Lab) -> Iterator[Site]:
    with three_hosts(worker_lab) as site:
        yield site


@pytest.fixture(autouse=True)
def _settled(fleet: Site, request: pytest.FixtureRequest) -> None:
    begin(fleet, request)


def set_balancer(host: Host, works: bool) -> None:
    host.run(f"printf '#!/bin/sh\\nexit {0 if works else 1}\\n' >/root/balancer; chmod +x /root/balancer")


def test_drain_hooks_that_fail_behind_a_proven_canary_take_nothing_back(fleet: Site) -> None:
    canary, *others = fleet.lab.hosts
    before = proven(fleet.lab.hosts)
    set_balancer(canary, works=True)
    for host in others:
        set_balancer(host, works=False)
    both = ("--wave", "2", "--max-unavailable", "2", "--data", 'drain_hook=["/root/balancer"]')
    run = rollout(fleet, *both, stream_interval=21)
    assert run.status == 3, run.output
    assert "stopped and held: " in run.output
    assert all(f"[{host.name}]   the drain_hook ended with status 1" in run.output for host in others), run.output
    assert "is at fault" not in run.output
    assert switches(run) == [canary.name]
    assert proven(others) == before[1:]
    assert proven([canary]) != before[:1]
    for host in others:
        set_balancer(host, works=True)
    again = fleet.rackwright("resume", "-y")
    assert again.status == 0, again.output
    assert "done: 2 switched" in again.output
    after = proven(fleet.lab.hosts)
    assert not set(before) & set(after)
    assert_all_serve(fleet, after)


def test_a_killed_rollout_is_resumed_as_one_past_a_deploy_that_the_lease_refused(fleet: Site) -> None:
    canary, second, third = fleet.lab.hosts
    second.set_engine_faults({"fault": "load_seconds", "value": 90, "when": {"option.stream_interval": 22}})
    killed = Running(fleet, str(BIN / "rackwright"), "rollout", "inventory/lab.py", *words(stream_interval=22))
    try:
        assert killed.until(f"[{second.name}]   switching to release") is not None, killed.output
        refused = fleet.deploy()
        assert refused.status == 1, refused.output
        assert "another run writes to this host" in refused.output
    finally:
        killed.stop()
    cut, deploy = [one["run"] for one in json.loads(fleet.rackwright("runs", "--json").output)][-2:]
    named = fleet.rackwright("resume", deploy, "-y")
    assert named.status == 1
    assert f"run {deploy} (deploy inventory/lab.py) was refused before it did anything" in named.output
    run = fleet.rackwright("resume", "-y")
    assert run.status == 0, run.output
    assert "done: 2 switched" in run.output
    assert run.output.count("proved: a tool call") == 2, "the full gate"
    assert "--> Wave 0 is done: watching" in run.output, "its bake"
    begin = json.loads(fleet.rackwright("runs", "last", "--json").output)["events"][0]
    assert (begin["purpose"], begin["resumes"]) == ("rollout", cut)
    assert begin["data"] == {
        "engine": {"stream_interval": 22},
        "rollout.wave": "1",
        "rollout.bake": 1,
        "gate.level": "full",
    }
    assert canary.name not in switches(run)
    assert third.name in switches(run)
    after = proven(fleet.lab.hosts)
    assert len(set(after)) == 1
    assert_all_serve(fleet, after)


def test_where_rolling_back_failed_hands_are_needed_and_resume_says_so(fleet: Site) -> None:
    canary, *others = fleet.lab.hosts
    assert rollout(fleet, stream_interval=22).status == 0
    before = proven(fleet.lab.hosts)
    canary.run("systemctl stop rackwright-llm")
    bad = {"fault": "drop_tool_calls", "when": {"option.stream_interval": 23}}
    worse = {"fault": "wrong_answers", "when": {"option.stream_interval": 23}}
    broken = {"fault": "die_at_end_of_load", "when": {"option.stream_interval": 22}}
    canary.set_engine_faults(bad, worse, broken)
    run = rollout(fleet, stream_interval=23)
    assert run.status == 4, run.output
    assert f"hands needed on {canary.name}: rolling back failed" in run.output
    assert "nothing serves" in fleet.rackwright("runs", "last").output
    still = fleet.rackwright("resume", "-y")
    assert still.status == 4, still.output
    assert f"hands needed on {canary.name}: rolling back failed there" in still.output
    assert "nothing is left" not in still.output
    assert proven(others) == before[1:]
    canary.set_engine_faults()
    again = fleet.rackwright("resume", "-y")
    assert again.status == 3, again.output
    assert "was rolled back: what served serves its last good release" in again.output
    assert_all_serve(fleet, before)
