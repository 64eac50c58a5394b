"""What goes wrong around a rollout on a whole fleet under load. On three hosts test_rollout.py has most of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.lab.conftest import BIN, Run
from tests.lab.fleet.conftest import DOWN, HOSTS, Fleet, Watched, switches_of
from tests.lab.fleet.told import failed_outside
from tests.lab.running import Running
from tests.lab.test_rebuild import fingerprint

pytestmark = [pytest.mark.lab, pytest.mark.skipif(HOSTS < 10, reason="make proof")]

LONG = 200.0 + 60 * HOSTS
KILLED_AT = {
    "staging": (31, "write release"),
    "the canary's switch": (32, "switching to release"),
    "the proof": (33, "proved: a chat answer"),
    "the bake": (34, "is done: watching"),
}


def words(number: int, *options: str) -> list[str]:
    limits = ["--max-unavailable", str(DOWN), "--wave", "25%", "--bake", "2"]
    engine = json.dumps({"stream_interval": number})
    return [
        str(BIN / "rackwright"),
        "rollout",
        "inventory/lab.py",
        "-y",
        *limits,
        "--data",
        f"engine={engine}",
        *options,
    ]


@contextmanager
def rolling(fleet: Fleet, number: int, *options: str) -> Iterator[Running]:
    """A rollout that is followed while it runs; it does not outlive the block."""
    running = Running(fleet.site, *words(number, *options))
    try:
        yield running
    finally:
        running.stop()


def resumed(fleet: Fleet) -> Run:
    run = fleet.site.rackwright("resume", "-y", timeout=LONG)
    assert run.status == 0, run.output
    return run


def assert_all_new(fleet: Fleet, before: list[str]) -> None:
    after = fleet.releases()
    assert not set(before) & set(after)
    fleet.assert_serving(after)


@pytest.mark.parametrize("phase", KILLED_AT)
def test_a_control_process_that_is_killed_leaves_nothing_that_resume_does_not_mend(
    fleet: Fleet, load: Watched, phase: str
) -> None:
    number, sign = KILLED_AT[phase]
    before = fleet.releases()
    with rolling(fleet, number) as running:
        assert running.until(sign, LONG) is not None, running.output
    resumed(fleet)
    assert_all_new(fleet, before)


def test_of_two_rollouts_at_once_one_goes_through(fleet: Fleet, load: Watched) -> None:
    before = fleet.releases()
    with rolling(fleet, 41) as first:
        assert first.until("switching to release", LONG) is not None, first.output
        with rolling(fleet, 42) as second:
            refused = second.end(LONG)
        done = first.end(LONG)
    assert refused.status != 0, refused.output
    assert "another run writes to this host" in refused.output, refused.output
    assert done.status == 0, done.output
    assert switches_of(refused) == []
    assert failed_outside(load.asked, switches_of(done)) == []
    assert_all_new(fleet, before)


def test_a_host_that_is_cut_off_in_its_switch_is_left_aside_and_picked_up(fleet: Fleet, load: Watched) -> None:
    before = fleet.releases()
    cut = fleet.hosts[HOSTS // 2]
    with rolling(fleet, 51, "--error-budget", "1") as running:
        assert running.until(f"[{cut.name}]   switching to release", LONG) is not None, running.output
        cut.cut_network()
        try:
            run = running.end(LONG)
        finally:
            cut.restore_network()
    assert f"{cut.name} is quarantined" in run.output, run.output
    failed = failed_outside(load.asked, switches_of(run))
    assert {one.host for one in failed} <= {cut.name}
    assert cut.run("curl -fs http://127.0.0.1:8000/health", check=False).returncode == 0
    resumed(fleet)
    assert_all_new(fleet, before)


def test_dark_hosts_are_skipped_and_picked_up(fleet: Fleet, load: Watched) -> None:
    before = fleet.releases()
    dark = fleet.hosts[-max(1, HOSTS // 20) :]
    for host in dark:
        host.cut_network()
    try:
        run = fleet.site.command(*words(61, "--skip-offline", str(len(dark))), timeout=LONG)
    finally:
        for host in dark:
            host.restore_network()
    assert run.status == 0, run.output
    assert f"done: {HOSTS - len(dark)} switched" in run.output
    failed = failed_outside(load.asked, switches_of(run))
    assert {one.host for one in failed} <= {host.name for host in dark}
    resumed(fleet)
    assert_all_new(fleet, before)


def test_a_reinstalled_host_comes_back_while_the_others_serve(fleet: Fleet, load: Watched) -> None:
    back = fleet.hosts[HOSTS // 3]
    back.reset()
    back.new_host_key()
    options = ("--inventory", "inventory/lab.py", "-y", "--fingerprint", fingerprint(back))
    run = fleet.site.rackwright("rebuild", back.name, *options, timeout=LONG)
    assert run.status == 0, run.output
    assert "from bare OS to answered" in run.output
    assert {one.host for one in load.asked if one.wrong} <= {back.name}
