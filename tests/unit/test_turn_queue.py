"""The gate: inventory order, a canary first, one serving host at a time, and a stop at the first failure."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.record.cause import Cause, Reason
from rackwright.record.fault import judged
from rackwright.record.handover import VARIABLE, Handover
from rackwright.record.journal import read_record
from rackwright.rollout.turn_queue import Bake, Begin, Outcome, TurnQueue
from rackwright.rollout.waves import Node, RunLimits


def bad(cause: Cause, check: str, serves: bool = True) -> Outcome:
    return Outcome((Reason(cause, check),), serves)


class Fleet:
    """Hosts that switch in threads and note who switched when, and how many at once."""

    def __init__(self, serving: list[bool], failing: set[int]) -> None:
        self.turns, self.started, self.down, self.most_down = TurnQueue(), list[int](), 0, 0
        self.serving, self.lock = serving, threading.Lock()
        for order, serves in enumerate(serving):
            self.turns.announce(Node(f"h{order}", order, serves), self._work(order, order not in failing))

    def _work(self, order: int, well: bool) -> Callable[[], Outcome]:
        def work() -> Outcome:
            with self.lock:
                self.started.append(order)
                self.down += self.serving[order]
                self.most_down = max(self.most_down, self.down)
            time.sleep(0.001)
            with self.lock:
                self.down -= self.serving[order]
            return Outcome() if well else bad(Cause.CHECK, "a chat answer")

        return work

    def run(self, arrivals: list[int], pool: int) -> dict[int, bool]:
        """Let hosts arrive in this order, `pool` at a time, as pyinfra's pool does."""
        results: dict[int, bool] = {}
        slots = threading.Semaphore(pool)

        def arrive(order: int) -> None:
            with slots:
                results[order] = self.turns.pass_through(f"h{order}")

        threads = []
        for order in arrivals:
            threads.append(threading.Thread(target=arrive, args=(order,)))
            threads[-1].start()
        for thread in threads:
            thread.join(timeout=20)
            assert not thread.is_alive(), "the gate is stuck"
        return results


@settings(max_examples=60, deadline=None)
@given(
    serving=st.lists(st.booleans(), min_size=1, max_size=7),
    pool=st.integers(1, 4),
    seed=st.integers(0, 1000),
    failing=st.sets(st.integers(0, 6), max_size=1),
)
def test_order_limit_and_stop(serving: list[bool], pool: int, seed: int, failing: set[int]) -> None:
    arrivals = list(range(len(serving)))
    random.Random(seed).shuffle(arrivals)
    fleet = Fleet(serving, failing)
    results = fleet.run(arrivals, pool)
    assert fleet.started[0] == 0, "the canary is the first host of the inventory"
    assert fleet.most_down <= 1, "one serving host at a time"
    assert [order for order in fleet.started if serving[order] and order] == sorted(
        order for order in fleet.started if serving[order] and order
    )
    for order, well in results.items():
        assert well == (order in fleet.started and order not in failing)
    if not failing & set(fleet.started):
        assert sorted(fleet.started) == list(range(len(serving)))


def test_a_failed_canary_stops_everybody_else() -> None:
    fleet = Fleet([True, True, False], failing={0})
    assert fleet.run([2, 1, 0], pool=3) == {0: False, 1: False, 2: False}
    assert fleet.started == [0]
    assert fleet.turns.failed() == ["h0"]


def test_a_crash_in_a_switch_does_not_leave_the_others_waiting() -> None:
    gate = TurnQueue()

    def crash() -> Outcome:
        raise RuntimeError("cable pulled")

    gate.announce(Node("a", 0, True), crash)
    gate.announce(Node("b", 1, True), Outcome)
    with pytest.raises(RuntimeError):
        gate.pass_through("a")
    assert not gate.pass_through("b")


def test_a_wave_that_fails_its_bake_stops_the_next() -> None:
    fleet = Fleet([True, True, True], failing=set())
    baked: list[Bake] = []

    def bake(task: Bake) -> dict[str, Outcome]:
        baked.append(task)
        return {"h0": bad(Cause.CHECK, "restarts")} if task.wave == 0 else {}

    fleet.turns.bake = bake
    fleet.run([0, 1, 2], pool=3)
    assert fleet.started == [0]
    assert baked == [Bake(0, ("h0",))]
    assert fleet.turns.failed() == ["h0"]


def test_a_fault_of_a_host_is_left_aside_within_the_budget() -> None:
    fleet = Fleet([True] * 4, failing=set())
    fleet.turns.limits = RunLimits({}, wave=1, budget=1)
    fleet.turns.entries["h1"].work = lambda: bad(Cause.CONNECTION, "the connection")
    assert fleet.run([3, 2, 1, 0], pool=4) == {0: True, 1: False, 2: True, 3: True}


def test_a_wave_is_asked_for_before_it_begins_and_may_be_held() -> None:
    fleet, begun, ended = Fleet([True] * 4, failing=set()), list[Begin](), list[str]()

    def on_wave(task: Begin) -> str:
        begun.append(task)
        assert len(fleet.started) in (0, 1, 3)
        return "a freeze" if task.wave == 2 else ""

    fleet.turns.on_wave, fleet.turns.on_end = on_wave, lambda name, _: ended.append(name)
    fleet.turns.limits = RunLimits({"all": 2}, wave=2)
    assert fleet.run([3, 2, 1, 0], pool=4) == {0: True, 1: True, 2: True, 3: False}
    assert begun == [Begin(0, ("h0",)), Begin(1, ("h1", "h2")), Begin(2, ("h3",))]
    assert fleet.turns.held == "a freeze"
    assert sorted(ended) == ["h0", "h1", "h2"]


def test_ends_are_told_of_failures_too_and_of_those_after_the_switch() -> None:
    fleet, ended = Fleet([True, True], failing=set()), list[tuple[str, bool]]()
    fleet.turns.on_end = lambda name, outcome: ended.append((name, outcome.is_well))
    fleet.turns.bake = lambda _: {"h0": bad(Cause.CHECK, "restarts")}
    fleet.run([0, 1], pool=2)
    assert ended == [("h0", True), ("h0", False)]


def test_hosts_that_stay_down_use_up_the_limit() -> None:
    fleet = Fleet([True] * 3, failing=set())
    fleet.turns.limits = RunLimits({}, budget=2)
    fleet.turns.entries["h1"].work = lambda: bad(Cause.CONNECTION, "the connection", serves=False)
    assert fleet.run([0, 1, 2], pool=3) == {0: True, 1: False, 2: False}
    assert fleet.started == [0]


def test_two_drain_hooks_that_fail_after_a_proven_canary_are_not_the_releases_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "run.jsonl"
    monkeypatch.setenv(VARIABLE, Handover(record=str(record)).text)
    fleet = Fleet([True] * 4, failing=set())
    fleet.turns.limits = RunLimits({"all": 2})
    both = threading.Barrier(2, timeout=5)

    def work() -> Outcome:
        both.wait()
        return bad(Cause.HOOK, "the drain hook")

    for name in ("h1", "h2"):
        fleet.turns.entries[name].work = work
    assert fleet.run([0, 1, 2, 3], pool=4) == {0: True, 1: False, 2: False, 3: False}
    failures = [event for event in read_record(record) if event["kind"] == "failure"]
    assert [(event["host"], event["cause"], event["fault"]) for event in failures] == [
        (event["host"], "hook", "unknown") for event in failures
    ]
    assert len(failures) == 2


def test_all_that_went_wrong_with_a_host_counts() -> None:
    fleet = Fleet([True] * 3, failing=set())
    reasons = (Reason(Cause.HOOK, "the ready hook"), Reason(Cause.CHECK, "speed"))
    fleet.turns.entries["h1"].work = lambda: Outcome(reasons)
    fleet.run([0, 1, 2], pool=3)
    assert judged(fleet.turns.failures).is_the_releases
