"""Who takes a model from whom: the chain of a run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rackwright.plan.hand_on import BEFORE, KEEPERS, LAST, ChainPart, Sharer, handovers


def sharer(number: int, has: bool = False, **more: object) -> Sharer:
    return Sharer(f"h{number}", f"10.0.0.{number}", 7461, has, **more)  # type: ignore[arg-type]


def names(part: ChainPart) -> tuple[list[str], list[str]]:
    return [one.host for one in part.sources], [one.host for one in part.takers]


def test_the_first_host_asks_the_hub_and_each_takes_from_those_before_it() -> None:
    found = handovers([sharer(number) for number in range(4)])
    assert [host for host, part in found.items() if part.from_hub] == ["h0"]
    assert names(found["h0"]) == ([], ["h1", "h2", "h3"])
    assert names(found["h2"]) == (["h1", "h0", "h3"], ["h3", "h1"])
    assert names(found["h3"]) == (["h2", "h1", "h0"], ["h1", "h2"])


def test_a_thousand_hosts_have_short_lists_and_the_last_ones_serve_whoever_is_slow() -> None:
    found = handovers([sharer(number, has=number == 500) for number in range(1000)])
    assert names(found["h700"])[0][:2] == ["h699", "h698"]
    assert names(found["h700"])[0][-5:] == ["h500", "h999", "h998", "h997", "h996"]
    assert max(len(part.sources) for part in found.values()) == BEFORE + 1 + LAST
    assert len(found["h800"].takers) == BEFORE
    assert names(found["h999"])[1][0] == "h0"


def test_a_seed_comes_first_whatever_its_place() -> None:
    found = handovers([sharer(number) for number in range(3)], seed="h2")
    assert found["h2"].from_hub
    assert names(found["h0"]) == (["h2", "h1"], ["h1"])
    assert not found["h0"].from_hub


def test_a_rebuilt_host_is_filled_by_its_nearest_neighbours_and_never_asks_the_hub() -> None:
    found = handovers([sharer(number, has=number in {0, 1, 2, 3, 5, 6, 7}) for number in range(8)])
    assert set(found) == {"h3", "h4", "h5"}
    assert names(found["h4"]) == (["h3", "h5"], [])
    assert not any(part.from_hub for part in found.values())


def test_what_hosts_outside_the_run_have_goes_to_its_first_host_which_may_ask_the_hub_in_need() -> None:
    outside = [sharer(0, has=True, outside=True), sharer(3, has=True, outside=True, serves=True)]
    found = handovers([outside[0], sharer(1), sharer(2), outside[1]])
    assert names(found["h1"])[0] == ["h0", "h3", "h2"]
    assert [host for host, part in found.items() if part.from_hub] == ["h1"]
    assert [host for host, part in found.items() if part.keeps] == ["h3", "h0"]
    in_run = handovers([sharer(0, has=True), sharer(1), sharer(2), outside[1]])
    assert not any(part.from_hub for part in in_run.values()), "a host of the run is certain to be there"


def test_a_host_knows_its_place_among_those_that_lack_it() -> None:
    found = handovers([sharer(number, has=number == 1) for number in range(4)])
    assert {host: part.index for host, part in found.items()} == {"h1": 0, "h0": 0, "h2": 1, "h3": 2}


def test_an_idle_host_hands_on_rather_than_one_that_serves() -> None:
    found = handovers([sharer(0, True), sharer(1), sharer(2, True, serves=True), sharer(3, True)])
    assert names(found["h1"])[0] == ["h0", "h3"]


def test_hosts_wait_longer_where_all_that_have_it_hand_it_on_to_another_run_first() -> None:
    found = handovers([sharer(0, True, busy=True), sharer(1), sharer(2, True, busy=True), sharer(3)])
    assert {host: part.waits for host, part in found.items()} == {"h0": False, "h1": True, "h2": False, "h3": True}
    found = handovers([sharer(0, True, busy=True), sharer(1), sharer(2), sharer(3, True)])
    assert names(found["h1"])[0][:2] == ["h3", "h0"], "one that is free comes first"
    assert not any(part.waits for part in found.values())
    assert not any(part.waits for part in handovers([sharer(1), sharer(2)]).values())


def test_a_host_that_serves_hands_on_a_quarter_of_its_link() -> None:
    assert sharer(1, serves=True, link=10_000).serve_mib == 298.0
    assert sharer(1, serves=True).serve_mib == 29.8
    assert sharer(1, link=10_000).serve_mib is None


def test_nothing_is_planned_where_no_host_lacks_it() -> None:
    assert handovers([sharer(1, True), sharer(2, True)]) == {}


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=40), st.integers(0, 40))
def test_every_host_gets_it_and_knows_whom_it_takes_from_and_who_takes_from_it(
    fleet: list[tuple[bool, bool, bool]], seed: int
) -> None:
    sharers = [sharer(n, has, serves=serves, asks_hub=hub) for n, (has, serves, hub) in enumerate(fleet)]
    found = handovers(sharers, f"h{seed}")
    lacking = [one for one in sharers if one.lacks]
    assert {one.host for one in lacking} <= set(found)
    assert all(part.sources or part.from_hub for host, part in found.items() if host in {o.host for o in lacking})
    at_hub = [host for host, part in found.items() if part.from_hub]
    allowed = {one.host for one in lacking if one.asks_hub}
    assert len(set(at_hub) - allowed) <= 1
    order = list(found)
    for host, part in found.items():
        assert len(part.sources) <= BEFORE + KEEPERS + LAST
        assert host not in {source.host for source in part.sources}
        before = [source for source in part.sources if order.index(source.host) < order.index(host)]
        assert list(part.sources[: len(before)]) == before, "those behind a host come last"
        assert before or not part.sources
        assert {source.host for source in part.sources} == {
            other for other, one in found.items() if any(taker.host == host for taker in one.takers)
        }
