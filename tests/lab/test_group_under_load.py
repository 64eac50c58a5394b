"""Three endpoints of two hosts each, under load: whatever happens to one pair, no client of the others notices.

The tests are one story, in this order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rackwright_lab.hosts.host import Host
from tests.lab.calm import settle
from tests.lab.conftest import Run, Site, own_lab
from tests.lab.fleet.load_log import Span, failed_outside
from tests.lab.fleet.watching import Watched, assert_nobody_noticed, loading, switches_of
from tests.lab.fleets import HOME, proven, running
from tests.lab.group.serving import begin_rollout, command, deploy, kill, rackwright, resume, started, wait_for
from tests.lab.products import in_proof

pytestmark = [
    pytest.mark.lab,
    in_proof("test_group.py has one pair without load; unit/test_group.py takes pairs in and out of waves as one"),
]

PAIRS = 3
RATE = 1.0
"""Requests a second and endpoint."""
ONE_AT_A_TIME = ("-y", "--plain", "--wave", "1", "--max-unavailable", "1", "--bake", "1")


@pytest.fixture(scope="module")
def fleet() -> Iterator[Site]:
    """Six hosts that serve as three endpoints."""
    with own_lab("g", hosts=2 * PAIRS) as lab:
        site = Site(lab)
        run = deploy(site)
        assert run.status == 0, run.output
        yield site


@pytest.fixture(autouse=True)
def _settled(fleet: Site) -> None:
    settle(fleet.lab)


@pytest.fixture
def load(fleet: Site, tmp_path: Path) -> Iterator[Watched]:
    """Constant load on the three heads during a test."""
    with loading(heads(fleet), RATE, tmp_path / "load.jsonl") as watched:
        yield watched


def heads(fleet: Site) -> Sequence[Host]:
    """Return the hosts that answer."""
    return fleet.lab.hosts[::2]


def asked_for(number: int) -> dict[str, int]:
    """Return the engine's options, with one that a test has for itself."""
    return {"tensor-parallel-size": 16, "max-num-seqs": number}


def rollout(fleet: Site, number: int) -> Run:
    return rackwright(fleet, "rollout", *ONE_AT_A_TIME, engine=asked_for(number))


def assert_pairs_serve(fleet: Site, releases: list[str]) -> None:
    """Every host runs what it has proven, and these."""
    assert running(fleet.lab.hosts) == proven(fleet.lab.hosts) == releases


def test_a_good_change_rolls_through_pair_by_pair_and_no_client_notices(fleet: Site, load: Watched) -> None:
    before = proven(fleet.lab.hosts)
    run = rollout(fleet, 8)
    assert run.status == 0, run.output
    assert_nobody_noticed(load, run, 1)
    after = proven(fleet.lab.hosts)
    assert not set(before) & set(after)
    assert_pairs_serve(fleet, after)


def test_a_bad_change_stops_at_the_first_pair_and_rolls_back(fleet: Site, load: Watched) -> None:
    before = proven(fleet.lab.hosts)
    for host in fleet.lab.hosts:
        host.set_engine_faults({"fault": "repeat_bang", "when": {"option.max_num_seqs": 9}})
    run = rollout(fleet, 9)
    assert run.status == 3, run.output
    assert {span.host for span in switches_of(run)} == {host.name for host in fleet.lab.hosts[:2]}
    assert_nobody_noticed(load, run, 1)
    assert_pairs_serve(fleet, before)


def test_a_member_whose_disk_is_full_keeps_its_pair_as_it_was_and_no_other(fleet: Site, load: Watched) -> None:
    before, containers = proven(fleet.lab.hosts), [started(host) for host in fleet.lab.hosts]
    pair = slice(2, 4)
    member = fleet.lab.hosts[3]
    member.run(f"mount -t tmpfs -o size=4k,nr_inodes=1 small {HOME}/releases")
    try:
        run = rollout(fleet, 10)
    finally:
        member.run(f"umount {HOME}/releases")
    assert run.status == 5, run.output
    assert f"[{member.name}]" in next(
        output_line for output_line in run.output.splitlines() if "RW0729: " in output_line
    )
    names = ", ".join(host.name for host in fleet.lab.hosts[pair])
    assert f"RW0615: {names} did not reach the switch" in run.output
    assert "4 switched" in run.output
    assert_nobody_noticed(load, run, 1)
    after = proven(fleet.lab.hosts)
    assert after[pair] == before[pair]
    assert not {*after[:2], *after[4:]} & set(before)
    assert [started(host) for host in fleet.lab.hosts[pair]] == containers[pair]
    assert_pairs_serve(fleet, after)


def test_a_member_that_dies_takes_its_own_pair_down_and_no_other(fleet: Site, load: Watched) -> None:
    before = [started(host) for host in fleet.lab.hosts]
    kill(fleet.lab.hosts[3])

    def is_back() -> bool:
        head = [one for one in load.requests if one.host == fleet.lab.hosts[2].name]
        return not {started(host) for host in fleet.lab.hosts[2:4]} & {*before[2:4], ""} and not head[-1].wrong

    assert wait_for(is_back, 120)
    pair = [Span(fleet.lab.hosts[2].name, 0, float("inf"))]
    assert failed_outside(load.requests, pair) == []
    assert [started(host) for host in (*fleet.lab.hosts[:2], *fleet.lab.hosts[4:])] == [*before[:2], *before[4:]]


def test_a_rollout_that_is_killed_in_a_pairs_switch_is_resumed_for_the_rest(fleet: Site, load: Watched) -> None:
    before = proven(fleet.lab.hosts)
    killed = begin_rollout(fleet, engine=asked_for(11))
    try:
        assert killed.until(f"[{fleet.lab.hosts[2].name}]   switching to release") is not None, killed.output
    finally:
        killed.stop()
    run = resume(fleet, engine=asked_for(11))
    assert run.status == 0, run.output
    after = proven(fleet.lab.hosts)
    assert not set(before) & set(after)
    assert_pairs_serve(fleet, after)
    untouched = heads(fleet)[2].name
    spans = switches_of(run)
    assert [one for one in failed_outside(load.requests, spans) if one.host == untouched] == []


def test_a_reinstalled_member_comes_back_while_the_other_pairs_serve(fleet: Site, load: Watched) -> None:
    before = proven(fleet.lab.hosts)
    member = fleet.lab.hosts[-1]
    member.reset()
    run = command(fleet, "rebuild", "--limit", member.name, settings={"engine": asked_for(11)})
    assert run.status == 0, run.output
    assert_pairs_serve(fleet, before)
    pair = [Span(heads(fleet)[-1].name, 0, float("inf"))]
    assert failed_outside(load.requests, pair) == []
