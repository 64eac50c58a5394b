"""Hosts that the former version deployed stay what they are under this one; it runs until 0.2.0 is out.

The tests are one story, in this order: one site, made and deployed by the former version, then upgraded.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from scripts.formats import formats
from tests.lab.conftest import ARTEFACTS, BIN, ROOT, Run, Site
from tests.lab.products import in_proof
from tests.lab.running import Running
from tests.lab.scene import Scene, interval
from tests.lab.test_teardown import assert_purged, state
from tests.lab.upgrade.former import Former

pytestmark = pytest.mark.lab

FLEET = "inventory/fleet.py"
LISTED = ROOT / "tests" / "fixtures" / "formats-0.1.txt"
CONTAINERS = "docker ps --no-trunc --format '{{.Names}} {{.ID}}' | sort"
RELEASES = "docker ps --format '{{.Names}} {{.Label \"rackwright.release\"}}' | sort"

JOB_ENDED = "! systemctl is-active --quiet rackwright-job-switch-llm"


@dataclass
class Upgraded:
    """The lab's site in both versions' hands."""

    site: Site
    folder: Path
    former: Former
    bare: dict[str, dict[str, Any]]
    """What was on each host before anything was deployed."""

    @property
    def not_updated(self) -> Path:
        """The site as the former version left it: a colleague's, who has not upgraded yet."""
        return self.folder.with_name(f"{self.folder.name}-not-updated")

    @property
    def hosts(self) -> list[Host]:
        return self.site.lab.hosts

    def before(self, program: str, *words: str) -> Run:
        """Run a command of the former version."""
        return self.site.command(*self.former.words(program, *words), cwd=self.folder)

    def now(self, verb: str, *words: str) -> Run:
        """Run a command of this version; `deploy` is pyinfra's."""
        command = ("pyinfra", FLEET, "deploy.py", "-y") if verb == "deploy" else ("rackwright", verb)
        return self.site.command(BIN / command[0], *command[1:], *words, cwd=self.folder)

    def answer(self, verb: str, *words: str) -> Any:
        """Return what a verb of this version answers as JSON."""
        output = self.now(verb, FLEET, "--json", *words).output
        return json.loads(output[output.index("{") :])  # before it stands which hosts it waits for

    def on_hosts(self, command: str) -> dict[str, list[str]]:
        return {host.name: host.run(command).stdout.splitlines() for host in self.hosts}

    def limits(self, *hosts: Host) -> list[str]:
        return [text for host in hosts for text in ("--limit", host.name)]


@pytest.fixture(scope="module")
def fleet() -> Iterator[Upgraded]:
    """Boot a lab that the former version deploys; it drains the second host."""
    lab = Lab.open(f"t{os.getpid()}v")
    folder = ARTEFACTS / f"site-{lab.paths.id}"
    lab.down()
    shutil.rmtree(folder, ignore_errors=True)
    try:
        former = Former()
        lab.up(hosts=5, bare=0, short_lists=True, in_memory=True)
        found = Upgraded(Site(lab), folder, former, {host.name: state(host) for host in lab.hosts})
        _deploy_by_the_former(found)
        yield found
    finally:
        lab.down()
        for one in (folder, folder.with_name(f"{folder.name}-not-updated")):
            shutil.rmtree(one, ignore_errors=True)


def _deploy_by_the_former(found: Upgraded) -> None:
    found.folder.parent.mkdir(exist_ok=True)
    made = found.site.command(*found.former.words("rackwright", "init", str(found.folder)))
    assert made.status == 0, made.output
    shutil.copy(Path(__file__).with_name("fleet.py"), found.folder / FLEET)
    deployed = found.before("pyinfra", FLEET, "deploy.py", "-y")
    assert deployed.status == 0, deployed.output
    why = ("--reason", "a cable is swapped", "--anyway")
    drained = found.before("rackwright", "drain", found.hosts[1].name, "-i", FLEET, "-y", *why)
    assert drained.status == 0, drained.output
    shutil.copytree(found.folder, found.not_updated)


def test_the_site_is_brought_to_this_version(fleet: Upgraded) -> None:
    updated = fleet.now("init", "--update", ".")
    assert updated.status == 0, updated.output


def test_the_list_of_its_formats_is_whole(fleet: Upgraded) -> None:
    assert formats(fleet.former.source) == LISTED.read_text().splitlines()


def test_what_looks_knows_the_hosts_and_plans_no_restart(fleet: Upgraded) -> None:
    plan = fleet.answer("plan")
    assert {host["host"]: host["state"] for host in plan["hosts"]} == {host.name: "pending" for host in fleet.hosts}
    assert [
        change for host in plan["hosts"] for change in host["changes"] if change["restarts"] or change["stops"]
    ] == []
    drift = fleet.now("drift", FLEET)
    assert drift.status == 0, drift.output
    rows = fleet.answer("status")["endpoints"]
    assert [row["health"] for row in rows] == ["serving", "drained", *["serving"] * 4]
    assert [(row["drift"], row["proven"], row["wanted"], row["moved"]) for row in rows] == [(False, True, True, [])] * 6
    assert [row["endpoint"] for row in rows if row["adopts"]] == ["llm", "a", "b", "llm", "llm"]


def test_a_deploy_restarts_nothing_and_a_second_one_changes_nothing(fleet: Upgraded) -> None:
    before = fleet.on_hosts(CONTAINERS)
    assert [len(found) for found in before.values()] == [1, 0, 2, 1, 1]
    run = fleet.now("deploy")
    assert (run.status, "RW0823" in run.output) == (0, False), run.output
    assert fleet.on_hosts(CONTAINERS) == before
    again = fleet.now("deploy")
    assert (again.status, again.changed) == (0, []), again.output
    assert fleet.on_hosts(CONTAINERS) == before


def test_a_rollout_goes_on_from_there_and_a_rollback_to_there_serves(fleet: Upgraded) -> None:
    plain, _, _, *pair = fleet.hosts
    limits, before = fleet.limits(plain, *pair), fleet.on_hosts(RELEASES)
    run = fleet.now("rollout", FLEET, "-y", "--plain", "--bake", "1", "--adopt", *limits)
    assert run.status == 0, run.output
    after = fleet.on_hosts(RELEASES)
    assert [host for host in fleet.hosts if after[host.name] != before[host.name]] == [plain, *pair]
    back = fleet.now("rollback", FLEET, "-y", *limits)
    assert back.status == 0, back.output
    assert fleet.on_hosts(RELEASES) == before
    assert all("42" in Scene(fleet.site, host).ask() for host in (plain, pair[0]))


@in_proof("one host and a pair go so above")
def test_all_others_go_on_from_there_and_roll_back_to_there(fleet: Upgraded) -> None:
    plain, drained, double = fleet.hosts[:3]
    limits, before = fleet.limits(plain, drained, double), fleet.on_hosts(RELEASES)
    undrained = fleet.now("undrain", FLEET, "--limit", drained.name, "-y")
    assert undrained.status == 0, undrained.output
    before |= {drained.name: before[plain.name]}
    assert fleet.on_hosts(RELEASES) == before
    assert fleet.now("deploy").status == 0
    run = fleet.now("rollout", FLEET, "-y", "--plain", "--bake", "1", "--adopt", *limits)
    assert run.status == 0, run.output
    assert not set(fleet.on_hosts(RELEASES)[double.name]) & set(before[double.name])
    back = fleet.now("rollback", FLEET, "-y", *limits)
    assert back.status == 0, back.output
    assert fleet.on_hosts(RELEASES) == before
    assert all("42" in Scene(fleet.site, host).ask() for host in (plain, drained, double))


@in_proof("a run that was killed is taken over in tests/lab/test_cuts.py; here the other version began it")
def test_a_switch_that_the_former_version_began_is_waited_for(fleet: Upgraded) -> None:
    plain = fleet.hosts[0]
    # It loads until the run that joins has come: on a busy machine that takes a minute.
    slow = f"environment={json.dumps({'TRTLLM_STANDIN_LOAD_SECONDS': '75'})}"
    other = ("--data", f"engine={json.dumps(interval(11))}", "--data", slow, "--limit", plain.name)
    words = fleet.former.words("pyinfra", FLEET, "deploy.py", "-y", *other)
    begun = Running(fleet.site, *words, cwd=fleet.not_updated)
    assert begun.until("switching to release") is not None, begun.output
    live = fleet.now("deploy", *other)
    assert (live.status, "RW0705" in live.output) == (1, True), live.output
    begun.stop()
    joined = fleet.now("deploy", *other)
    assert (joined.status, "waiting for rackwright-job-switch-llm" in joined.output) == (0, True), joined.output
    assert plain.run(JOB_ENDED).returncode == 0
    before = fleet.on_hosts(CONTAINERS)
    again = fleet.now("deploy", *other)
    assert (again.status, again.changed) == (0, []), again.output
    assert fleet.on_hosts(CONTAINERS) == before


def test_a_teardown_leaves_nothing(fleet: Upgraded) -> None:
    run = fleet.now("teardown", FLEET, "--all", "-y", "--purge")
    assert run.status == 0, run.output
    for host in fleet.hosts:
        assert_purged(host)
        assert state(host) == fleet.bare[host.name]
