"""The measuring of the fleet proof: it must see a failure outside a switch, and hosts that are down together."""

from __future__ import annotations

from typing import Any

from tests.lab.fleet.load_log import LoadRequest, failed_outside, most_down, switching

BEGUN = 1_800_000_000.0


def request(host: str, start: float, wrong: str = "") -> LoadRequest:
    return LoadRequest(host, BEGUN + start, BEGUN + start + 0.2, wrong)


def event(host: str, second: int, state: str) -> dict[str, Any]:
    return {"kind": "host", "host": host, "state": state, "time": f"2027-01-15T08:00:{second:02}+00:00"}


def test_a_failure_counts_only_outside_its_own_hosts_switch() -> None:
    spans = switching([event("a", 10, "switching"), event("a", 20, "switched"), event("b", 30, "unchanged")])
    assert failed_outside([request("a", 12, "refused"), request("a", 5)], spans) == []
    assert [one.host for one in failed_outside([request("b", 12, "refused")], spans)] == ["b"]
    assert len(failed_outside([request("a", 5, "refused"), request("a", 25, "refused")], spans)) == 2


def test_a_switch_without_an_end_goes_on() -> None:
    spans = switching([event("a", 10, "switching")])
    assert failed_outside([request("a", 900, "refused")], spans) == []


def test_a_host_that_fails_after_its_switch_counts_until_it_is_back() -> None:
    states = ((10, "switching"), (20, "switched"), (40, "failed after its switch"), (41, "switching"), (50, "switched"))
    spans = switching([event("a", second, state) for second, state in states])
    assert failed_outside([request("a", 30, "refused"), request("a", 45, "refused")], spans) == []
    assert len(failed_outside([request("a", 55, "refused")], spans)) == 1


def test_hosts_that_fail_at_the_same_moment_are_down_together() -> None:
    one_by_one = [request("a", 1, "x"), request("a", 2), request("b", 3, "x"), request("b", 4)]
    assert most_down(one_by_one) == 1
    together = [request("a", 1, "x"), request("a", 3, "x"), request("a", 4), request("b", 2, "x"), request("b", 5)]
    assert most_down(together) == 2
    assert most_down([request("a", 1), request("b", 1)]) == 0
