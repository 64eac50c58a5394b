"""Whose fault a run's failures are: the same in whatever order they came, and a release's by a refused check alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.record.cause import Cause, Reason
from rackwright.record.fault import Failure, Fault, Judgement, failures_in, judged

CHECKS = ("a chat answer", "speed", "the start")


def failure(host: str, cause: Cause, check: str = "a chat answer", wave: int = 3) -> Failure:
    return Failure(host, cause, check, wave)


def refused(host: str, check: str = "a chat answer", wave: int = 3) -> Failure:
    return failure(host, Cause.CHECK, check, wave)


FAILURES = st.builds(
    Failure, st.sampled_from("abcd"), st.sampled_from(Cause), st.sampled_from(CHECKS), st.integers(0, 4)
)


@given(st.lists(FAILURES, max_size=6).flatmap(lambda failures: st.tuples(st.just(failures), st.permutations(failures))))
def test_the_order_of_failures_means_nothing(both: tuple[list[Failure], list[Failure]]) -> None:
    first, again = both
    for budget in (0, 2):
        assert judged(first, budget) == judged(again, budget)


@given(st.lists(FAILURES, max_size=6), FAILURES)
def test_a_releases_fault_is_never_forgotten(failures: list[Failure], more: Failure) -> None:
    if judged(failures).is_the_releases:
        assert judged([*failures, more], 9).is_the_releases
        assert not judged([*failures, more], 9).goes_on


@given(st.lists(FAILURES.filter(lambda one: one.cause is not Cause.CHECK), max_size=8))
def test_without_a_refused_check_no_release_is_at_fault(failures: list[Failure]) -> None:
    assert not judged(failures).is_the_releases


@given(st.lists(FAILURES, min_size=1, max_size=6), st.integers(0, 4))
def test_a_run_continues_only_past_hosts_with_faults_of_their_own(failures: list[Failure], budget: int) -> None:
    found = judged(failures, budget)
    only_own_faults = all(one.cause.is_hosts for one in failures) and len({one.host for one in failures}) <= budget
    assert found.goes_on == only_own_faults
    assert set(found.blamed) == {one.host for one in failures if one.cause.is_hosts}


def test_the_budget_counts_hosts_however_much_went_wrong_with_each() -> None:
    assert judged([failure("a", Cause.GPU, "Xid"), failure("a", Cause.GPU, "counters")], 1).goes_on
    assert not judged([failure("a", Cause.GPU), failure("b", Cause.GPU)], 1).goes_on


@pytest.mark.parametrize(
    ("failures", "fault"),
    [
        ([], None),
        ([refused("a", wave=0)], Fault.RELEASE),
        ([refused("a", wave=1)], Fault.RELEASE),
        ([refused("a")], Fault.UNKNOWN),
        ([refused("a"), refused("b")], Fault.RELEASE),
        ([refused("a"), refused("a")], Fault.UNKNOWN),
        ([refused("a", "streaming"), refused("b")], Fault.UNKNOWN),
        ([refused("a", "streaming"), refused("a"), refused("b")], Fault.RELEASE),
        ([failure("a", Cause.GPU, wave=0)], Fault.HOST),
        ([failure("a", Cause.GPU), failure("b", Cause.DISK)], Fault.HOST),
        ([failure("a", Cause.HOOK, wave=0)], Fault.UNKNOWN),
        ([failure("a", Cause.HOOK), failure("b", Cause.HOOK)], Fault.UNKNOWN),
        ([failure("a", Cause.LEASE), failure("b", Cause.LEASE)], Fault.UNKNOWN),
        ([failure("a", Cause.COMMIT, wave=0), failure("b", Cause.COMMIT)], Fault.UNKNOWN),
        ([failure("a", Cause.CONNECTION), refused("b")], Fault.UNKNOWN),
        ([refused("b", wave=1), failure("a", Cause.CONNECTION)], Fault.RELEASE),
    ],
)
def test_whose_fault(failures: list[Failure], fault: Fault | None) -> None:
    assert judged(failures).fault is fault


def test_each_host_has_a_fault_of_its_own_beside_the_runs() -> None:
    found = judged([refused("a", wave=0), failure("b", Cause.GPU, "Xid"), failure("c", Cause.HOOK)], 5)
    assert found == Judgement(Fault.RELEASE, {"b": Reason(Cause.GPU, "Xid")}, frozenset("a"), goes_on=False)
    assert [found.whose(host) for host in "abc"] == [Fault.RELEASE, Fault.HOST, Fault.UNKNOWN]


def test_failures_are_read_from_a_record_and_an_unknown_cause_blames_nobody() -> None:
    event = {"kind": "failure", "host": "a", "cause": Cause.DISK, "check": "the disk", "wave": 2}
    events = [json.loads(json.dumps(one)) for one in (event, {**event, "cause": "moonlight"}, {"kind": "host"})]
    assert failures_in(events) == [failure("a", Cause.DISK, "the disk", 2), failure("a", Cause.OTHER, "the disk", 2)]
