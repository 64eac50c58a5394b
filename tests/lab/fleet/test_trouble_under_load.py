"""What goes wrong around a rollout on a whole fleet under load. On three hosts test_rollout.py has most of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.lab.conftest import BIN, Run
from tests.lab.fleet.conftest import DOWN, HOSTS, LIMIT, Fleet
from tests.lab.fleet.load_log import failed_outside
from tests.lab.fleet.watching import Watched, switches_of
from tests.lab.running import Running
from tests.lab.test_rebuild import fingerprint
from tests.refused import refusal

pytestmark = [pytest.mark.lab, LIMIT, pytest.mark.skipif(HOSTS < 10, reason="make proof")]

LONG = 200.0 + 60 * HOSTS
KILLED_AT = ("write release", "switching to release", "proved: a chat answer", "is done: watching")
"""The words that announce each phase of a rollout: staging, the canary's switch, its proof, and a bake."""


LIMITS = ["--max-unavailable", str(DOWN), "--wave", "25%", "--bake", "2"]
ROLLOUT = [str(BIN / "rackwright"), "rollout", "inventory/lab.py", "-y", *LIMITS]


def words(number: int, *options: str) -> list[str]:
    engine = json.dumps({"stream_interval": number})
    return [*ROLLOUT, "--data", f"engine={engine}", *options]


@contextmanager
def running(fleet: Fleet, *command: str) -> Iterator[Running]:
    """Follow a command while it runs; it does not outlive the block."""
    found = Running(fleet.site, *command)
    try:
        yield found
    finally:
        found.stop()


def resumed(fleet: Fleet) -> Run:
    run = fleet.site.rackwright("resume", "-y", timeout=LONG)
    assert run.status == 0, run.output
    return run


def assert_all_new(fleet: Fleet, before: list[str]) -> None:
    after = fleet.releases()
    assert not set(before) & set(after)
    fleet.assert_serving(after)


def test_a_control_process_that_is_killed_in_every_phase_leaves_nothing_that_resume_does_not_mend(
    fleet: Fleet, load: Watched
) -> None:
    before = fleet.releases()
    command = words(31)
    for sign in KILLED_AT:
        with running(fleet, *command) as killed:
            assert killed.until(sign, LONG) is not None, killed.output
        command = [str(BIN / "rackwright"), "resume", "-y"]
    resumed(fleet)
    assert_all_new(fleet, before)


def test_of_two_rollouts_at_once_one_goes_through(fleet: Fleet, load: Watched) -> None:
    before = fleet.releases()
    with running(fleet, *words(41)) as first:
        assert first.until("switching to release", LONG) is not None, first.output
        with running(fleet, *words(42)) as second:
            refused = second.end(LONG)
        done = first.end(LONG)
    assert refused.status != 0, refused.output
    refusal(refused.output, "RW0705")
    assert done.status == 0, done.output
    assert switches_of(refused) == []
    assert failed_outside(load.requests, switches_of(done)) == []
    assert_all_new(fleet, before)


def test_a_host_that_is_cut_off_in_its_switch_is_left_aside_and_picked_up(fleet: Fleet, load: Watched) -> None:
    before = fleet.releases()
    cut = fleet.hosts[HOSTS // 2]
    with running(fleet, *words(51, "--error-budget", "1")) as cut_short:
        assert cut_short.until(f"[{cut.name}]   switching to release", LONG) is not None, cut_short.output
        cut.cut_network()
        try:
            run = cut_short.end(LONG)
        finally:
            cut.restore_network()
    assert f"{cut.name} is quarantined" in run.output, run.output
    failed = failed_outside(load.requests, switches_of(run))
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
    failed = failed_outside(load.requests, switches_of(run))
    assert {one.host for one in failed} <= {host.name for host in dark}
    resumed(fleet)
    assert_all_new(fleet, before)


def test_a_reinstalled_host_comes_back_while_the_others_serve(fleet: Fleet, load: Watched) -> None:
    # A rebuilt host gets what its group serves, so the group must serve what the settings ask, without --data.
    settled = fleet.site.command(*ROLLOUT, timeout=LONG)
    assert settled.status == 0, settled.output
    back = fleet.hosts[HOSTS // 3]
    back.reset()
    back.new_host_key()
    options = ("--limit", back.name, "-y", "--fingerprint", fingerprint(back))
    run = fleet.site.rackwright("rebuild", "inventory/lab.py", *options, timeout=LONG)
    assert run.status == 0, run.output
    assert "from bare OS to answered" in run.output
    failed = failed_outside(load.requests, switches_of(settled))
    assert {one.host for one in failed} <= {back.name}
