"""What hosts say of a run decides no setting, no path and no hook of the machine that resumes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.lease import Lease, LeaseHolder, SeenLease
from rackwright.messages import RackwrightError
from rackwright.operations.switch_queue import SwitchQueue
from rackwright.record.cause import Cause, Reason
from rackwright.record.journal import adopt_record, chosen_record, order_of, read_record
from rackwright.rollout.recovered_record import FoundOnHost, at_home, confirm_data, refuse_while_held
from rackwright.rollout.run_hosts import RunHost
from rackwright.rollout.turn_queue import Outcome
from tests.unit.machines import settings

LIMITS = {"rollout.wave": "1", "gate.level": "full"}
ENGINE = {"engine": {"stream_interval": 31}}
HOOKS = {"rollout.hooks": {"finish": [["sh", "-c", "id"]]}}


@pytest.mark.parametrize(
    ("values", "data", "asks"),
    [
        ({}, {}, False),
        (LIMITS, {}, False),
        ({**LIMITS, **ENGINE}, {}, True),
        ({**LIMITS, **ENGINE}, ENGINE, False),
        (HOOKS, HOOKS, False),
    ],
)
def test_limits_go_unsaid_and_other_settings_are_shown_or_said_again(
    values: dict[str, Any], data: dict[str, Any], asks: bool
) -> None:
    confirm_data(values, data, asks)


@pytest.mark.parametrize(
    ("values", "data", "asks", "shown"),
    [
        (ENGINE, {}, False, """--data 'engine={"stream_interval": 31}'"""),
        (ENGINE, {"engine": {"stream_interval": 32}}, True, "--data 'engine="),
        ({}, {"image": "mine"}, True, "the run had no --data"),
        (HOOKS, {}, True, "--data 'rollout.hooks="),
        ({"rollout.wave": {"hooks": []}}, {}, False, "--data 'rollout.wave="),
        ({"rollout": {"hooks": []}}, {}, True, "--data 'rollout="),
    ],
)
def test_what_only_hosts_say_is_refused(values: dict[str, Any], data: dict[str, Any], asks: bool, shown: str) -> None:
    with pytest.raises(RackwrightError) as error:
        confirm_data(values, data, asks)
    assert error.value.code == "RW0865"
    assert shown in str(error.value)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "site" / "inventory").mkdir(parents=True)
    for name in ("site/deploy.py", "site/inventory/b200.py", "elsewhere.py"):
        (tmp_path / name).touch()
    return (tmp_path / "site").resolve()


def begin(**fields: Any) -> dict[str, Any]:
    return {"kind": "begin", "inventory": "inventory/b200.py", "deploy": "deploy.py", **fields}


def test_files_are_those_of_this_machine(site: Path) -> None:
    found = at_home(begin(), str(site / "inventory" / "b200.py"), site)
    assert (found["inventory"], found["deploy"]) == (str(site / "inventory/b200.py"), str(site / "deploy.py"))


@pytest.mark.parametrize("deploy", ["../elsewhere.py", "/etc/passwd", "gone.py", "inventory"])
def test_no_file_outside_the_site_is_run(site: Path, deploy: str) -> None:
    with pytest.raises(RackwrightError) as error:
        at_home(begin(deploy=deploy), str(site / "inventory" / "b200.py"), site)
    assert error.value.code == "RW0866"


def test_a_run_of_another_inventory_names_it(site: Path) -> None:
    with pytest.raises(RackwrightError, match=r"rackwright resume -i inventory/gb200.py") as error:
        at_home(begin(inventory="inventory/gb200.py"), str(site / "inventory" / "b200.py"), site)
    assert error.value.code == "RW0864"


def test_an_adopted_record_lies_among_the_others_by_its_time(tmp_path: Path) -> None:
    run = "20260131-235959-rollout"
    path = adopt_record(tmp_path, run, [begin(), {"kind": "phase", "name": "rollout"}])
    assert chosen_record(tmp_path, run) == path
    assert [event["kind"] for event in read_record(path)] == ["begin", "phase"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert order_of("20260131-235958-deploy") < order_of(run) < order_of(f"{run}-2")


def held_by(run: str, expires: int = 200) -> dict[str, FoundOnHost]:
    holder = LeaseHolder("ann", "laptop", f"pyinfra deploy.py, run {run}", "laptop boot pid:[1]", 7, 7)
    return {"h1": FoundOnHost(None, SeenLease(4, 100, Lease(4, "word", holder, 90, expires)))}


def test_a_run_that_still_holds_a_lease_from_elsewhere_is_not_resumed() -> None:
    held = r"h1 .* ann@laptop .* lease break i\.py"
    with pytest.raises(RackwrightError, match=held) as error:
        refuse_while_held("20260131-235959-rollout", held_by("20260131-235959-rollout"), "i.py")
    assert error.value.code == "RW0863"
    refuse_while_held("20260131-235959-rollout", held_by("20260131-235959-rollout", expires=95), "i.py")
    refuse_while_held("20260131-235959-rollout", held_by("20260131-235959-deploy"), "i.py")


def test_a_host_keeps_its_failure_at_once_since_others_may_switch_for_minutes() -> None:
    turns, failures = SwitchQueue(), list[str]()
    turns.add(RunHost("h1", 0, ("all",), True, settings()))
    turns.keepers["h1"] = lambda: failures.append("h1")
    turns.bake("h1", lambda _: Outcome())
    assert turns.turns.on_end is not None
    turns.turns.on_end("h1", Outcome())
    assert failures == []
    turns.turns.on_end("h1", Outcome((Reason(Cause.CHECK, "a chat answer"),)))
    assert failures == ["h1"]
