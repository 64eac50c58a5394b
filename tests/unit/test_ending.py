"""How a run ended: exit status and sentence follow from each host's state, and from all failures together."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.exit_codes import ExitCode
from rackwright.record.cause import READY_HOOK, Cause
from rackwright.record.ending import Result, end_of_drain, end_of_rollout, end_of_way_back, result
from rackwright.record.fault import Failure
from rackwright.record.states import RunState
from tests.refused import refusal

HOSTS = ("h1", "h2")
RELEASE = (Failure("h2", Cause.CHECK, "speed", 0), Failure("h1", Cause.CONNECTION, "the connection", 1))
HOST = (Failure("h2", Cause.DISK, "the disk", 1),)
HOOKS = (Failure("h1", Cause.HOOK, "the drain hook", 1), Failure("h2", Cause.HOOK, "the drain hook", 1))


def states(**named: str) -> dict[str, RunState]:
    return {host: RunState(state) for host, state in named.items()}


def found(failures: tuple[Failure, ...] = (), **named: str) -> Result:
    return Result(states(**named), failures=failures)


SWITCHED = found(h1="switched")


def test_a_host_whose_job_was_ended_rolls_back_on_its_own() -> None:
    events: list[dict[str, Any]] = [
        {"kind": "phase", "name": "rollout"},
        {"kind": "host", "host": "h1", "state": "switching", "before": {"llm": "old"}},
        {"kind": "host", "host": "h1", "state": "unknown", "unseen": True},
    ]
    status, text = end_of_rollout("i.py", ["h1"], 1, result(events, "rollout"), None)
    assert status == 4
    refusal(text, "RW0629", "h1: ", "rackwright status i.py --limit h1, ")
    events[-1] = {**events[-1], "state": "nothing serves", "unseen": None}
    _, text = end_of_rollout("i.py", ["h1"], 1, result(events, "rollout"), None)
    refusal(text, "RW0611", "h1")


def test_a_switch_that_the_run_did_not_see_to_its_end_is_no_failed_rollback() -> None:
    events: list[dict[str, Any]] = [
        {"kind": "phase", "name": "rollout"},
        {"kind": "host", "host": "h1", "state": "switching", "before": {"llm": "old"}},
    ]
    status, text = end_of_rollout("i.py", ["h1"], -9, result(events, "rollout"), None)
    assert status == 4
    refusal(text, "RW0622", "h1", "rackwright resume")


@pytest.mark.parametrize(
    ("status", "forward", "backward", "code", "text"),
    [
        (0, found(h1="switched", h2="unchanged"), None, 0, "1 switched, 1 unchanged"),
        (0, found(h1="switched", h2="done"), None, 0, "1 switched, 0 unchanged"),
        (0, SWITCHED, None, 5, "h2 did not reach the switch"),
        (1, found(h1="switched", h2="switched"), None, 1, "not everything was done"),
        (0, found(RELEASE, h1="rolled back", h2="not switched"), None, 3, "was rolled back"),
        (1, found(RELEASE, h1="switched", h2="rolled back"), SWITCHED, 3, "rolled back"),
        (1, found(RELEASE, h1="switched", h2="rolled back"), found(h1="rolled back"), 4, "manual action needed on h1"),
        (1, found(RELEASE, h1="switched", h2="rolled back"), found(), 4, "manual action needed on h1"),
        (1, found(RELEASE, h1="switched", h2="rolled back"), None, 4, "manual action needed on h1"),
        (1, found(RELEASE, h1="switched", h2="nothing serves"), SWITCHED, 4, "manual action needed on h2"),
        (1, found(RELEASE, h1="nothing serves", h2="not switched"), None, 4, "manual action needed on h1"),
        (1, found(RELEASE, h1="failed after its switch", h2="not switched"), SWITCHED, 3, "rolled"),
        (1, found(HOST, h1="failed after its switch", h2="not switched"), None, 4, "manual action needed on h1"),
        (1, found(h1="switching"), None, 4, "unknown on h1"),
        (1, found(h1="switched", h2="unreachable"), None, 5, "h2 did not reach the switch"),
        (1, found(h1="switched", h2="busy"), None, 5, "h2 did not reach the switch"),
        (1, found(h1="not switched", h2="failed before its switch"), None, 1, "h1, h2 did not reach the switch"),
        (1, found(h1="not converged", h2="switched"), None, 5, "h1 did not converge"),
        (1, found(HOST, h1="switched", h2="failed"), None, 5, "h2 failed by a fault of its own"),
        (1, found(HOST, h1="not switched", h2="failed"), None, 1, "stopped and held: h2 failed"),
        (1, found(HOOKS, h1="failed", h2="failed"), None, 1, "stopped and held: h1, h2 failed"),
        (1, found(HOST, h1="rolled back", h2="not switched"), None, 3, "stopped and held: h1 failed"),
        (1, found(HOST, h1="rolled back", h2="switched"), None, 5, "h1 failed by a fault of its own"),
    ],
)
def test_the_exit_status_comes_from_the_record(
    status: int, forward: Result, backward: Result | None, code: int, text: str
) -> None:
    leaving = forward.named(RunState.SWITCHED) if forward.judgement.is_the_releases else []
    ended = end_of_rollout("inventory/b200.py", HOSTS, status, forward, backward, leaving)
    assert ended[0] == code
    assert text in ended[1]


@pytest.mark.parametrize(("second", "code", "number"), [("not switched", 5, "1 host"), ("failed", 1, "2 hosts")])
def test_a_host_whose_ready_hook_failed_has_the_change(second: str, code: int, number: str) -> None:
    failed = [host for host, state in {"h1": "failed", "h2": second}.items() if state == "failed"]
    failures = tuple(Failure(host, READY_HOOK.cause, READY_HOOK.check, 0) for host in failed)
    ended = end_of_rollout("i.py", HOSTS, 1, found(failures, h1="failed", h2=second), None)
    assert ended[0] == code
    refusal(ended[1], "RW0614", f"{', '.join(failed)} failed, the change is on {number}")
    drain = tuple(Failure("h1", Cause.HOOK, check, 0) for check in ("the drain hook", READY_HOOK.check))
    assert "on 0 hosts" in end_of_rollout("i.py", HOSTS, 1, found(drain, h1="failed", h2="not switched"), None)[1]


@given(st.fixed_dictionaries({host: st.sampled_from(RunState) for host in HOSTS}), st.sampled_from(["", "a hook"]))
def test_a_sentence_on_hosts_names_them(ends: dict[str, RunState], held: str) -> None:
    text = end_of_rollout("inventory/b200.py", HOSTS, 1, Result(ends, held=held), None)[1]
    assert "  " not in text
    assert " on :" not in text
    assert text.startswith(("RW0610", "done")) or any(host in text for host in HOSTS) or "not everything" in text


def test_a_resumed_run_that_stops_leaves_a_mixed_fleet() -> None:
    forward = Result(states(h2="failed"), failures=HOST)
    code, text = end_of_rollout("i.py", ["h2"], 1, forward, None, earlier=["h1"])
    assert (code, "on 1 host;" in text) == (ExitCode.MIXED, True), text
    assert end_of_rollout("i.py", ["h2"], 1, forward, None)[0] is ExitCode.ERROR


def test_what_never_served_is_not_said_to_serve_again_text() -> None:
    forward = Result(states(h1="failed", h2="not switched"), {"h1": {}}, RELEASE)
    code, text = end_of_rollout("inventory/b200.py", HOSTS, 1, forward, None)
    assert code == 3
    assert "nothing serves on h1, where no release was ever proven" in text
    assert "serves its last good release" not in text
    served = Result(forward.states, {"h1": {"llm": "0123456789ab"}}, RELEASE)
    assert "serves its last good release" in end_of_rollout("inventory/b200.py", HOSTS, 1, served, None)[1]


def test_a_way_back_is_over_when_every_host_has_left_the_release() -> None:
    code, text = end_of_way_back(["h1"], SWITCHED, ["h2"])
    assert code == 3
    refusal(text, "RW0612", "h2")
    assert end_of_way_back(["h1", "h2"], SWITCHED, [])[0] == 4
    assert end_of_way_back(["h1"], None, [])[0] == 4
    code, text = end_of_way_back(["h1"], SWITCHED, [], ["h3"])
    assert (code, "manual action needed on h3" in text) == (4, True)


def test_each_exit_code_stands_in_the_docs_once() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/exit-codes.md").read_text().partition("## `pyinfra")[0]
    rows = [int(found[1]) for found in re.finditer(r"^\| (\d+) \|", page, re.M)]
    assert rows == sorted(ExitCode)


@pytest.mark.parametrize(("other", "status", "code"), [("done", 5, "RW0626"), ("failed", 1, "RW0620")])
def test_a_host_that_another_run_holds_has_no_mark_of_a_drain(other: str, status: int, code: str) -> None:
    ended, text = end_of_drain(["h1", "h2"], 1, found(h1="busy", h2=other), "rackwright undrain i.py")
    assert ended == status
    refusal(text, code, "h1")
