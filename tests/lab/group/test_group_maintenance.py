"""One endpoint over two hosts as those who look after it treat it: drained, restarted, rebuilt and ended as one.

The tests are one story, in this order; what serves has several real processes, by a stand-in of vLLM.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.lab.conftest import Site
from tests.lab.fleets import proven
from tests.lab.group.serving import (
    ask,
    begin_rollout,
    begin_run,
    boot,
    command,
    prepare,
    rackwright,
    running_releases,
    started,
    state,
    wait_until_one_release_serves,
)
from tests.lab.products import in_proof
from tests.refused import refusal

pytestmark = pytest.mark.lab

LATER = {"engine": {"tensor-parallel-size": 16, "max-num-seqs": 41}}
"""What serves in the last part of the story."""


@pytest.fixture(autouse=True)
def _served(site: Site, request: pytest.FixtureRequest) -> None:
    prepare(site, request)


def test_half_of_them_is_not_drained(site: Site) -> None:
    head, member = site.lab.hosts
    half = command(site, "drain", "--limit", member.name, "--reason", "x")
    assert half.status == 1
    refusal(half.output, "RW0842", head.name, member.name, "endpoint llm")
    assert [state(host) for host in site.lab.hosts] == ["active", "active"]


@in_proof(
    "a restart below drains both and takes both in; three_hosts/test_maintenance.py has the mark and who is skipped"
)
def test_they_are_drained_together_and_taken_in_together(site: Site) -> None:
    before = proven(site.lab.hosts)
    head, member = site.lab.hosts
    drained = command(
        site, "drain", "--limit", head.name, "--limit", member.name, "--reason", "a cable is swapped", "--anyway"
    )
    assert drained.status == 0, drained.output
    assert [state(host) for host in site.lab.hosts] == ["inactive", "inactive"]
    skipped = rackwright(site, "rollout", "-y")
    assert "every chosen host is drained" in skipped.output
    back = command(site, "undrain", "--all")
    assert back.status == 0, back.output
    assert running_releases(site) == proven(site.lab.hosts) == before
    assert ask(head) == "42"


def test_they_are_restarted_together_and_the_head_is_asked(site: Site) -> None:
    before, boots = proven(site.lab.hosts), [boot(host) for host in site.lab.hosts]
    run = rackwright(site, "reboot", "--all", "-y", "--plain", "--bake", "1")
    assert run.status == 0, run.output
    assert run.output.count("drained: it restarts") == 2
    assert "proved: a chat answer" in run.output
    assert not {boot(host) for host in site.lab.hosts} & set(boots)
    assert running_releases(site) == proven(site.lab.hosts) == before


@in_proof("both are restarted above, and a switch of both that was cut is resumed below")
def test_a_restart_of_them_that_was_cut_is_resumed_for_all(site: Site) -> None:
    head = site.lab.hosts[0]
    running = begin_run(site, "reboot", "--all", "-y", "--plain", "--bake", "1")
    assert running.until("drained: it restarts") is not None
    os.killpg(running.process.pid, signal.SIGKILL)
    running.end()
    run = max(Path(site.environment()["RACKWRIGHT_RUNS"]).glob("*-reboot.jsonl")).stem
    again = site.rackwright("resume", run, "-y", "--plain")
    assert again.status == 0, again.output
    assert f"[{head.name}] restart the host" not in again.output
    wait_until_one_release_serves(site)


def test_a_switch_of_them_that_was_cut_is_resumed_from_what_they_keep(site: Site) -> None:
    before = proven(site.lab.hosts)
    running = begin_rollout(site, **LATER)
    assert running.until("switching to release") is not None
    running.stop()
    records = Path(site.environment()["RACKWRIGHT_RUNS"])
    records.rename(records.with_name("the-first-laptop"))
    again = command(site, "resume", "--plain", settings=LATER)
    assert again.status == 0, again.output
    assert "2 of its 2 hosts know it" in again.output
    after = proven(site.lab.hosts)
    assert running_releases(site) == after
    assert len(set(after)) == 1
    assert not set(after) & set(before)
    assert ask(site.lab.hosts[0]) == "42"


@in_proof("a reinstalled member comes back below, where a new unit comes with it")
def test_a_reinstalled_member_comes_back_to_a_head_that_serves_what_is_asked_for(site: Site) -> None:
    switched = command(site, "rollout", "-y", "--plain", "--bake", "1", settings=LATER)  # nothing, after the test above
    assert switched.status == 0, switched.output
    before = proven(site.lab.hosts)
    head, member = site.lab.hosts
    member.reset()
    run = command(site, "rebuild", "--limit", member.name, settings=LATER)
    assert run.status == 0, run.output
    assert "proved: a chat answer" in run.output
    assert running_releases(site) == proven(site.lab.hosts) == before
    assert ask(head) == "42"


def test_a_reinstalled_member_comes_back_even_where_the_settings_ask_for_another_unit(site: Site) -> None:
    before = proven(site.lab.hosts)
    head, member = site.lab.hosts
    member.reset()
    run = command(site, "rebuild", "--limit", member.name, settings={**LATER, "start_limit": 4})
    assert run.status == 0, run.output
    assert "proved: a chat answer" in run.output
    after = proven(site.lab.hosts)
    assert running_releases(site) == after
    assert len(set(after)) == 1
    assert not set(after) & set(before), "the new unit came with it"
    assert ask(head) == "42"


def test_nothing_is_rolled_back_to_a_release_that_a_reinstalled_member_does_not_have(site: Site) -> None:
    before, containers = proven(site.lab.hosts), [started(host) for host in site.lab.hosts]
    run = rackwright(site, "rollback", "-y")
    assert run.status != 0
    assert f"{site.lab.hosts[-1].name} does not have release" in run.output
    assert [started(host) for host in site.lab.hosts] == containers, "what serves was not stopped"
    assert proven(site.lab.hosts) == before


def test_they_are_torn_down_together(site: Site) -> None:
    run = rackwright(site, "teardown", "--all", "-y")
    assert run.status == 0, run.output
    for host in site.lab.hosts:
        listing = "ls -d /var/lib/rackwright/endpoints /run/rackwright/groups; docker ps -aq --filter name=rackwright"
        assert host.run(f"({listing}) 2>/dev/null", check=False).stdout == ""
        units = host.run("systemctl list-units --all --plain --no-legend; systemctl list-unit-files --no-legend")
        assert "rackwright-llm" not in units.stdout
