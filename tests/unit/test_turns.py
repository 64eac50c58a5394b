"""What a failure was, which limits hold for which hosts, and what a bake watches."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from rackwright.concerns.endpoint.proof.full import GPU_COUNTERS
from rackwright.concerns.endpoint.proof.gpu_errors import GPU_ERRORS
from rackwright.concerns.endpoint.proof.proof_row import Answer
from rackwright.concerns.endpoint.switch.follow import (
    NotAdmittedError,
    NotCommittedError,
    NothingServesError,
    RefusedError,
    RolledBackError,
    StoppedError,
    UnknownEndError,
)
from rackwright.record.cause import Cause, Reason
from rackwright.record.handover import VARIABLE, Handover
from rackwright.record.states import RunState
from rackwright.remote.errors import ConnectionLostError, LeaseLostError, NotStartedError, StepFailedError
from rackwright.rollout import run_hosts
from rackwright.rollout.run_hosts import (
    RunHost,
    bake_rows,
    baking,
    domains_of,
    limits_of,
    node_of,
    outcome_of,
    state_after,
    still_serving,
    was_cut,
)
from rackwright.rollout.turn_queue import Bake, Outcome
from rackwright.rollout.waves import FIRST, LAST
from rackwright.settings.host_settings import EndpointSettings, HostSettings


def settings(**keys: object) -> HostSettings:
    model = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}
    return HostSettings.model_validate({"model": model, **keys})


STILL_SERVING = Path(run_hosts.__file__).parent / "host" / "still_serving.sh"
CHAT, SPEED = Reason(Cause.CHECK, "a chat answer"), Reason(Cause.CHECK, "speed")
START, UNBLAMED = Reason(Cause.CHECK, "the start"), Reason(Cause.OTHER, "the switch")
DRAIN, READY = Reason(Cause.HOOK, "the drain hook"), Reason(Cause.HOOK, "the ready hook")


def gpu(row: str) -> Reason:
    return Reason(Cause.GPU, row)


def after(way_out: StepFailedError, failure: StepFailedError) -> StepFailedError:
    way_out.__cause__ = failure
    return way_out


@pytest.mark.parametrize(
    ("error", "reasons", "serves"),
    [
        (after(RolledBackError("x"), RefusedError({"a chat answer": "!!!"})), (CHAT,), True),
        (after(RolledBackError("x"), RefusedError({"speed": "", "a chat answer": ""})), (SPEED, CHAT), True),
        (after(RolledBackError("x"), RefusedError({"speed": "", GPU_ERRORS: "Xid 79"})), (gpu(GPU_ERRORS),), True),
        (after(RolledBackError("x"), RefusedError({GPU_COUNTERS: "1"})), (gpu(GPU_COUNTERS),), True),
        (after(RolledBackError("x"), StepFailedError("y", (START,))), (START,), True),
        (after(RolledBackError("x"), StepFailedError("the server died: No space left on device")), (UNBLAMED,), True),
        (after(NothingServesError("x"), StepFailedError("y", (START,))), (START,), False),
        (after(StoppedError("x"), StepFailedError("y", (START,))), (START,), False),
        (after(NotAdmittedError("x"), RefusedError({"speed": ""})), (READY, SPEED), False),
        (ConnectionLostError("gone"), (Reason(Cause.CONNECTION, "the connection"),), False),
        (LeaseLostError("gone"), (Reason(Cause.LEASE, "the lease"),), True),
        (NotCommittedError("x"), (Reason(Cause.COMMIT, "the commit"),), True),
        (NotStartedError("busy"), (Reason(Cause.OTHER, "the switch was not started"),), True),
        (after(NotStartedError("x"), StepFailedError("y", (DRAIN,))), (DRAIN,), True),
    ],
)
def test_a_failure_says_what_it_was(error: StepFailedError, reasons: tuple[Reason, ...], serves: bool) -> None:
    assert outcome_of(error, served=True) == Outcome(reasons, serves)
    assert not outcome_of(error, served=False).serves


@pytest.mark.parametrize(
    ("error", "served", "state"),
    [
        (RolledBackError("x"), True, RunState.ROLLED_BACK),
        (NothingServesError("x"), True, RunState.NOTHING_SERVES),
        (NothingServesError("x"), False, RunState.NOTHING_SERVES),
        (UnknownEndError("x"), True, RunState.UNKNOWN),
        (StoppedError("x"), True, RunState.NOTHING_SERVES),
        (StoppedError("x"), False, RunState.FAILED),
        (NotStartedError("x"), True, RunState.FAILED),
    ],
)
def test_a_failed_rollback_leaves_nothing_that_serves_whatever_was_before(
    error: StepFailedError, served: bool, state: RunState
) -> None:
    assert state_after(error, served) is state


def member(number: int, rack: str | None, serving: bool = True, **keys: object) -> RunHost:
    return RunHost(
        f"h{number}",
        number,
        domains_of(("b200",), rack),
        serving,
        settings(hardware={"rack": rack}, rollout=keys),
    )


def test_limits_are_parts_of_the_hosts_that_serve() -> None:
    hosts = [member(number, f"r{number % 2}", number < 20, max_unavailable="20%") for number in range(40)]
    limits = limits_of(hosts, rollout=True)
    assert limits.down == {"b200": 4, "rack:r0": 2, "rack:r1": 2}
    assert limits.wave == 10
    assert limits.budget == 0


def test_the_lowest_limit_within_a_domain_holds_and_one_is_the_least() -> None:
    hosts = [
        member(0, None, max_unavailable=5),
        member(1, None, max_unavailable="1%"),
    ]
    assert limits_of(hosts, rollout=False).down == {"b200": 1}
    assert limits_of(hosts, rollout=False).wave is None


def test_who_goes_first_and_last(monkeypatch: pytest.MonkeyPatch) -> None:
    def rank(number: int, canary: bool = False) -> int:
        return node_of(member(number, None, canary=canary), "shape", takes_capacity=True).rank

    assert (rank(0), rank(1, canary=True)) == (0, FIRST)
    monkeypatch.setenv(VARIABLE, Handover(first=["h2"], last=["h3"]).text)
    assert (rank(0), rank(1, canary=True), rank(2), rank(3, canary=True)) == (0, FIRST, FIRST, LAST)
    assert [was_cut(f"h{number}") for number in range(4)] == [False, False, True, False]


def test_a_host_without_a_group_is_in_all() -> None:
    assert domains_of((), "r1") == ("all", "rack:r1")


@pytest.mark.parametrize(
    ("body", "passed"), [("active 0 abc 200", True), ("active 1 abc 200", False), ("activating 0 - 000", False)]
)
def test_a_bake_notices_a_restart(body: str, passed: bool) -> None:
    assert still_serving("llm", "abc", "http://127.0.0.1:8000").judge(Answer(0, body, 0)).passed is passed


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            "active 1 abc 200\nafter 14\nerror RuntimeError: CUDA error",
            "the engine died and systemd restarted it once after 14 s; its last error: RuntimeError: CUDA error",
        ),
        ("active 3 abc 200\nafter 2", "the engine died and systemd restarted it 3 times, first after 2 s"),
        ("active 1 abc 200", "the engine died and systemd restarted it once"),
        ("activating 1 - 000\nafter 14", "the engine died after 14 s, and systemd starts it again"),
        ("failed 5 - 000\nerror boom: x", "the engine ended, and its unit is failed; its last error: boom: x"),
        ("active 0 def 200", "release def runs, not abc"),
        ("active 0 - 000", "its container is not running"),
        ("active 0 abc 503", "/health answers 503"),
        ("active 0 abc 000", "/health does not answer"),
        ("stranger: python3, pid 7 listens", "stranger: python3, pid 7 listens"),
        ("", ""),
    ],
)
def test_a_bake_says_what_happened(body: str, says: str) -> None:
    verdict = still_serving("llm", "abc", "http://127.0.0.1:8000").judge(Answer(0, body, 0))
    assert (verdict.passed, verdict.text) == (False, says)


@pytest.mark.parametrize(("later", "first"), [("activating", "activating 0 abc 000"), ("active", "active 0 abc 000")])
def test_a_bake_waits_for_the_end_of_an_engine_that_answers_no_longer(later: str, first: str, tmp_path: Path) -> None:
    """`docker run` and the unit end a moment after the server."""
    fakes = {
        "systemctl": f"case $1 in show) echo 0 ;; *) [ -e {tmp_path}/asked ] && echo {later} || echo active ;; esac\n"
        f"touch {tmp_path}/asked",
        "docker": "echo abc",
        "curl": "printf 000; exit 7",
        "sleep": "",
        "journalctl": "",
    }
    for name, text in fakes.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    words = {"unit": "u", "container": "c", "url": "http://x", "home": str(tmp_path)}
    done = subprocess.run(
        ["sh", "-c", f"listener_stranger() {{ :; }}\n{STILL_SERVING.read_text()}"],
        env={**words, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[:1] == [first]


def test_a_bake_looks_at_its_hosts_side_by_side_and_names_who_failed() -> None:
    all_at_once = threading.Barrier(3, timeout=5)

    def watch(*reasons: Reason) -> Outcome:
        all_at_once.wait()
        return Outcome(reasons)

    watches = {
        "h1": lambda _: watch(),
        "h2": lambda _: watch(Reason(Cause.CHECK, "still serving")),
        "h3": lambda _: watch(),
    }
    assert list(baking(1, watches)(Bake(1, ("h1", "h2", "h3")))) == ["h2"]


def test_the_last_look_of_a_bake_asks_for_a_token() -> None:
    looks = list[bool]()

    def watch(last: bool) -> Outcome:
        looks.append(last)
        return Outcome()

    assert baking(1, {"h1": watch})(Bake(1, ("h1",))) == {}
    assert looks[-1:] == [True]
    assert not any(looks[:-1])
    spec = {"address": "0.0.0.0", "port": 8000, "served_name": "m"}
    endpoint = EndpointSettings(engine_kind="vllm")
    rows = [[row.name for row in bake_rows("llm", "abc", spec, last)] for last in (None, endpoint)]
    assert rows == [["still serving"], ["still serving", "engine steps"]]
