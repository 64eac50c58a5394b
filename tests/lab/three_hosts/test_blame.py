"""Whose fault a failed rollout was, and what `resume` makes of it, on three hosts that serve."""

from __future__ import annotations

import json
import re

import pytest

from rackwright_lab.hosts.host import Host
from tests import texts
from tests.lab.conftest import BIN, Site
from tests.lab.fleets import assert_all_serve, begin, engine_of, proven, rollout, switches, words
from tests.lab.products import in_proof
from tests.lab.running import Running
from tests.refused import refusal

pytestmark = pytest.mark.lab

DROPS_TOOLS = 3


@pytest.fixture(autouse=True)
def _settled(fleet: Site, request: pytest.FixtureRequest) -> None:
    begin(fleet, request)


def set_balancer(host: Host, works: bool) -> None:
    host.run(f"printf '#!/bin/sh\\nexit {0 if works else 1}\\n' >/root/balancer; chmod +x /root/balancer")


@in_proof("a property test permutes the failures; a failed way back is seen on hosts")
def test_drain_hooks_that_fail_behind_a_proven_canary_take_nothing_back(fleet: Site) -> None:
    canary, *others = fleet.lab.hosts
    before = proven(fleet.lab.hosts)
    set_balancer(canary, works=True)
    for host in others:
        set_balancer(host, works=False)
    both = ("--wave", "2", "--max-unavailable", "2", "--data", 'drain_hook=["/root/balancer"]')
    run = rollout(fleet, *both, stream_interval=21)
    assert run.status == 5, run.output
    assert "stopped and held: " in run.output
    ended = texts.ENDED.format(status=1)
    assert all(f"[{host.name}]   the drain_hook {ended}" in run.output for host in others), run.output
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


def last_run(fleet: Site, verb: str) -> str:
    """Return the id of the last run of that verb."""
    records = json.loads(fleet.rackwright("runs", "--json").output)
    return str([one["run"] for one in records if one["what"].startswith(f"{verb} ")][-1])


def test_a_killed_rollout_is_resumed_as_one_past_a_deploy_that_the_lease_refused(fleet: Site) -> None:
    canary, second, third = fleet.lab.hosts
    before = proven(fleet.lab.hosts)
    second.set_engine_faults({"fault": "never_ready", "when": {"option.stream_interval": 22}})
    killed = Running(fleet, str(BIN / "rackwright"), "rollout", "inventory/lab.py", *words(stream_interval=22))
    try:
        # Not while its container changes: what a reading sees of the host in that moment is anything.
        assert (
            killed.until(lambda output_line: f"[{second.name}]" in output_line and "loading, 5 s" in output_line)
            is not None
        )
        refused = fleet.deploy()
        assert refused.status == 1, refused.output
        refusal(refused.output, "RW0705")
        early = fleet.rackwright("resume", last_run(fleet, "rollout"), "-y")
        assert early.status == 1
        assert "is still under way" in early.output
    finally:
        killed.stop()
        second.set_engine_faults()
    assert texts.RUN_CUT in fleet.rackwright("runs").output
    cut, deploy = last_run(fleet, "rollout"), last_run(fleet, "deploy")
    named = fleet.rackwright("resume", deploy, "-y")
    assert named.status == 1
    message = f"run {deploy} (deploy inventory/lab.py) was refused before it did anything"
    assert message in named.output, f"{refused.output}\n{named.output}"
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
    began = re.findall(r"^.*\[(\S+)\] .*switch endpoint llm to release", run.output, re.MULTILINE)
    assert canary.name not in [*began, *switches(run)], "what has ended well is left alone"
    assert third.name in switches(run)
    after = proven(fleet.lab.hosts)
    assert not set(before) & set(after)
    assert len(set(after)) == 1
    assert_all_serve(fleet, after)
    again = fleet.rackwright("resume", "-y")
    assert again.status == 1
    assert "nothing is left of run" in again.output
    assert third.name in fleet.rackwright("runs", "last").output


@in_proof(
    "tests/unit/test_resuming.py names the host and what to do; tests/unit/test_transaction.py has the host's half"
)
def test_where_rolling_back_failed_hands_are_needed_and_resume_says_so(fleet: Site) -> None:
    canary, *others = fleet.lab.hosts
    before, serves = proven(fleet.lab.hosts), engine_of(canary).get("stream_interval")
    canary.run("systemctl stop rackwright-llm")
    bad = {"fault": "drop_tool_calls", "when": {"option.stream_interval": 23}}
    worse = {"fault": "wrong_answers", "when": {"option.stream_interval": 23}}
    broken = {"fault": "die_at_end_of_load", "when": {"option.stream_interval": serves}}
    canary.set_engine_faults(bad, worse, broken)
    run = rollout(fleet, stream_interval=23)
    assert run.status == 4, run.output
    assert f"manual action needed on {canary.name}: rollback failed" in run.output
    assert "nothing serves" in fleet.rackwright("runs", "last").output
    still = fleet.rackwright("resume", "-y")
    assert still.status == 4, still.output
    assert f"manual action needed on {canary.name}: rolling back failed there" in still.output
    assert "nothing is left" not in still.output
    assert proven(others) == before[1:]
    canary.set_engine_faults()
    again = fleet.rackwright("resume", "-y")
    assert again.status == 3, again.output
    refusal(again.output, "RW0612")
    assert_all_serve(fleet, before)


@in_proof("a killed rollout is resumed above, and tests/unit/test_resuming.py has one that was cut on its way back")
def test_killed_while_it_takes_a_release_back_and_resumed(fleet: Site) -> None:
    canary, second, _third = fleet.lab.hosts
    before = proven(fleet.lab.hosts)
    second.set_engine_faults({"fault": "drop_tool_calls", "when": {"option.stream_interval": DROPS_TOOLS}})
    words = ("-y", "--bake", "1", "--wave", "1", "--data", "engine=" + json.dumps({"stream_interval": DROPS_TOOLS}))
    bad = Running(fleet, str(BIN / "rackwright"), "rollout", "inventory/lab.py", *words)
    try:
        assert bad.until(f"the release is at fault: {canary.name} rolls back as well") is not None, bad.output
    finally:
        bad.stop()
        second.set_engine_faults()
    assert proven([canary]) != before[:1]
    run = fleet.rackwright("resume", "-y")
    assert run.status == 3, run.output
    assert f"the change failed on {second.name} and was rolled back" in run.output
    assert_all_serve(fleet, before)
    again = fleet.rackwright("resume", "-y")
    assert again.status == 1
    assert "nothing is left" in again.output


@in_proof("test_ssh_faults.py has a host that dies in a run; tests/unit/test_quarantine.py when one is skipped")
def test_a_dark_host_is_skipped_picked_up_and_quarantined_when_it_goes_dark_again(fleet: Site) -> None:
    *others, dark = fleet.lab.hosts
    before = proven(fleet.lab.hosts)
    dark.cut_network()
    try:
        refused = rollout(fleet, "--skip-offline", "10%", stream_interval=12)
        assert refused.status == 1, refused.output
        assert f"allows 0 of 3: {dark.name}; nothing was done" in refused.output
        assert proven(others) == before[:2]
        run = rollout(fleet, "--skip-offline", "34%", stream_interval=12)
    finally:
        dark.restore_network()
    assert run.status == 0, run.output
    assert f"{dark.name} is skipped" in run.output
    assert "done: 2 switched" in run.output
    assert proven([dark]) == before[2:]
    resumed = Running(fleet, str(BIN / "rackwright"), "resume", "-y")
    try:
        assert resumed.until(f"[{dark.name}]   switching to release") is not None, resumed.output
        dark.cut_network()
        lost = resumed.end()
    finally:
        resumed.stop()
        dark.restore_network()
    assert lost.status == 5, lost.output
    assert texts.QUARANTINED.format(host=dark.name, why="the connection") in lost.output
    listed = fleet.rackwright("status", "inventory/lab.py", "--only", "failed@last")
    assert "(quarantined" in listed.output
    assert others[0].name not in listed.output
    others_only = rollout(fleet, stream_interval=12)
    assert others_only.status == 0, others_only.output
    assert f"{dark.name} is skipped: quarantined since" in others_only.output
    assert "done: 0 switched, 2 unchanged" in others_only.output
    again = fleet.rackwright("resume", "-y")
    assert again.status == 0, again.output
    assert texts.WELL_AGAIN.format(host=dark.name) in again.output
    after = proven(fleet.lab.hosts)
    assert not set(before) & set(after)
    assert_all_serve(fleet, after)
    assert "no host is quarantined" in fleet.rackwright("quarantine", "inventory/lab.py").output
