"""A second operator's laptop: no record of the run, only what the hosts keep of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackwright.paths import SLICE
from tests import texts
from tests.lab.conftest import BIN, Run, Site
from tests.lab.fleets import assert_all_serve, begin, proven, switches, words
from tests.lab.products import in_proof
from tests.lab.running import Running

pytestmark = pytest.mark.lab
RESUME = ("resume", "-i", "inventory/lab.py", "-y")
ASKED = ("--data", 'engine={"stream_interval": 31}')


@pytest.fixture(autouse=True)
def _settled(fleet: Site, request: pytest.FixtureRequest) -> None:
    begin(fleet, request)


def first_laptop(fleet: Site, *words: str) -> Running:
    """Run a rollout on a machine that hosts cannot take for this one, by its name."""
    started = ("unshare", "--uts", "sh", "-c", 'hostname first-laptop && exec "$@"', "sh", str(BIN / "rackwright"))
    return Running(fleet, *started, "rollout", "inventory/lab.py", *words)


def records_of(fleet: Site) -> Path:
    return Path(fleet.environment()["RACKWRIGHT_RUNS"])


def resumed(run: Run) -> None:
    assert run.status == 0, run.output
    assert "done: 2 switched" in run.output
    assert run.output.count("proved: a tool call") == 2, "the full gate"
    assert "--> Wave 0 is done: watching" in run.output, "its bake"


@in_proof(
    "tests/unit/test_found_on_hosts.py puts runs together from any slices; test_blame.py resumes a killed rollout"
)
def test_a_killed_rollout_is_resumed_from_what_the_hosts_keep_even_after_a_reboot(fleet: Site) -> None:
    canary, second, third = fleet.lab.hosts
    before = proven(fleet.lab.hosts)
    nothing = fleet.rackwright("resume", "-y")
    second.set_engine_faults({"fault": "never_ready", "when": {"option.stream_interval": 31}})
    killed = Running(fleet, str(BIN / "rackwright"), "rollout", "inventory/lab.py", *words(stream_interval=31))
    try:
        assert killed.until(f"[{second.name}]   switching to release") is not None, killed.output
    finally:
        killed.stop()
        second.set_engine_faults()
    assert nothing.status == 1
    records_of(fleet).rename(records_of(fleet).with_name("the-first-laptop"))
    stat = second.run(f"stat -c '%a %U' {SLICE}").stdout.strip()
    assert stat == "600 root"
    assert '"switching"' in second.run(f"cat {SLICE}").stdout
    second.reboot()

    alone = fleet.rackwright("resume", "-y")
    assert alone.status == 1
    assert "rackwright resume -i INVENTORY" in alone.output
    unsaid = fleet.rackwright(*RESUME)
    assert unsaid.status == 1
    assert f"--data '{ASKED[1]}'" in unsaid.output, "hosts alone decide no setting"
    run = fleet.rackwright(*RESUME, *ASKED)
    resumed(run)
    assert "3 of its 3 hosts know it" in run.output
    assert switches(run) == [second.name, third.name], "what has ended well is left alone"
    begun = json.loads(fleet.rackwright("runs", "last", "--json").output)["events"][0]
    assert begun["data"]["gate.level"] == "full"
    assert begun["earlier"] == {canary.name: {"llm": before[0]}}, "the canary would have rolled back with it"
    after = proven(fleet.lab.hosts)
    assert len(set(after)) == 1
    assert not set(before) & set(after)
    assert_all_serve(fleet, after)
    again = fleet.rackwright(*RESUME)
    assert again.status == 1
    assert "nothing is left of run" in again.output


@in_proof("the way back from slices is a unit test, and unlock's words; a bad release on three hosts takes two minutes")
def test_a_rollout_killed_on_its_way_back_is_unlocked_and_taken_back_from_what_the_hosts_keep(fleet: Site) -> None:
    canary, second, _ = fleet.lab.hosts
    before = proven(fleet.lab.hosts)
    second.set_engine_faults({"fault": "repeat_bang", "when": {"option.stream_interval": 33}})
    killed = first_laptop(fleet, *words(stream_interval=33))
    try:
        assert killed.until(f"[{canary.name}]   switching to release {before[0]}") is not None, killed.output
    finally:
        killed.stop()
        second.set_engine_faults()
    assert "the release is at fault" in killed.output
    records_of(fleet).rename(records_of(fleet).with_name("its-laptop"))
    arguments = ("--data", 'engine={"stream_interval": 33}')
    held = fleet.rackwright(*RESUME, *arguments)
    assert held.status == 1
    assert "RW0863" in held.output
    assert "first-laptop" in held.output
    free = fleet.rackwright("lease", "break", "inventory/lab.py", "-y")
    assert free.status == 0, free.output
    assert f"{canary.name}: lease ended" in free.output
    assert "no host is leased" in fleet.rackwright("lease", "break", "inventory/lab.py", "-y").output
    run = fleet.rackwright(*RESUME, *arguments)
    assert run.status == 3, run.output
    assert proven(fleet.lab.hosts) == before
    assert_all_serve(fleet, before)
    again = fleet.rackwright(*RESUME, *arguments)
    assert again.status == 1
    assert texts.NOTHING_TO_RESUME in again.output
