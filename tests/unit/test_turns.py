"""What a failure was, which limits hold for which hosts, and what a bake watches."""

from __future__ import annotations

import json
import threading

import pytest

from rackwright.effects import ConnectionLostError, NotStartedError, StepFailedError
from rackwright.fleet.gate import Bake, Outcome
from rackwright.fleet.journal import ORDER
from rackwright.fleet.turns import (
    Member,
    baking,
    domains_of,
    found_switching,
    limits_of,
    node_of,
    outcome_of,
    watched,
)
from rackwright.fleet.waves import FIRST, LAST, Cause
from rackwright.fullproof import GPU_COUNTERS
from rackwright.proof import GPU_ERRORS, Answer
from rackwright.settings.model import HostSettings
from rackwright.switch import NothingServesError, RefusedError, WentBackError


def settings(**keys: object) -> HostSettings:
    model = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}
    return HostSettings.model_validate({"model": model, **keys})


def after(way_out: StepFailedError, failure: StepFailedError) -> StepFailedError:
    way_out.__cause__ = failure
    return way_out


@pytest.mark.parametrize(
    ("error", "cause", "check", "serves"),
    [
        (after(WentBackError("x"), RefusedError({"a chat answer": "!!!"})), Cause.CHECK, "a chat answer", True),
        (after(WentBackError("x"), StepFailedError("switch: failed")), Cause.CHECK, "the start", True),
        (after(WentBackError("x"), RefusedError({"speed": "", GPU_ERRORS: "Xid 79"})), Cause.HOST, GPU_ERRORS, True),
        (after(WentBackError("x"), RefusedError({GPU_COUNTERS: "1"})), Cause.HOST, GPU_COUNTERS, True),
        (after(NothingServesError("x"), StepFailedError("y")), Cause.CHECK, "the start", False),
        (ConnectionLostError("gone"), Cause.HOST, "the connection", False),
        (StepFailedError("a command failed: No space left on device"), Cause.HOST, "the disk", True),
        (NotStartedError("busy"), Cause.OTHER, "the switch was not started", True),
    ],
)
def test_a_failure_says_what_it_was(error: StepFailedError, cause: Cause, check: str, serves: bool) -> None:
    outcome = outcome_of(error, served=True)
    assert (outcome.cause, outcome.check, outcome.serves) == (cause, check, serves)
    assert not outcome_of(error, served=False).serves


def member(number: int, rack: str | None, serving: bool = True, **keys: object) -> Member:
    return Member(f"h{number}", number, domains_of(("b200",), rack), serving, settings(rack=rack, **keys))


def test_limits_are_parts_of_the_hosts_that_serve() -> None:
    hosts = [member(number, f"r{number % 2}", number < 20, max_unavailable="20%") for number in range(40)]
    limits = limits_of(hosts, rollout=True)
    assert limits.down == {"b200": 4, "rack:r0": 2, "rack:r1": 2}
    assert limits.wave == 10
    assert limits.budget == 0


def test_the_lowest_limit_within_a_domain_holds_and_one_is_the_least() -> None:
    hosts = [member(0, None, max_unavailable=5), member(1, None, max_unavailable="0")]
    assert limits_of(hosts, rollout=False).down == {"b200": 1}
    assert limits_of(hosts, rollout=False).wave is None


def test_who_goes_first_and_last(monkeypatch: pytest.MonkeyPatch) -> None:
    def rank(number: int, canary: bool = False) -> int:
        return node_of(member(number, None, canary=canary), "shape", takes_capacity=True).rank

    assert (rank(0), rank(1, canary=True)) == (0, FIRST)
    monkeypatch.setenv(ORDER, json.dumps({"first": ["h2"], "last": ["h3"]}))
    assert (rank(0), rank(1, canary=True), rank(2), rank(3, canary=True)) == (0, FIRST, FIRST, LAST)
    assert [found_switching(f"h{number}") for number in range(4)] == [False, False, True, False]


def test_a_host_without_a_group_is_in_all() -> None:
    assert domains_of((), "r1") == ("all", "rack:r1")


@pytest.mark.parametrize(
    ("body", "passed"), [("active 0 abc 200", True), ("active 1 abc 200", False), ("activating 0 - 000", False)]
)
def test_a_bake_notices_a_restart(body: str, passed: bool) -> None:
    assert watched("llm", "abc", "http://127.0.0.1:8000").judge(Answer(0, body, 0)).passed is passed


def test_a_bake_looks_at_its_hosts_side_by_side_and_names_who_failed() -> None:
    all_at_once = threading.Barrier(3, timeout=5)

    def watch(cause: Cause | None) -> Outcome:
        all_at_once.wait()
        return Outcome(cause, "still serving")

    watches = {"h1": lambda: watch(None), "h2": lambda: watch(Cause.CHECK), "h3": lambda: watch(None)}
    assert list(baking(1, watches)(Bake(1, ("h1", "h2", "h3")))) == ["h2"]
