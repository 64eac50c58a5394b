"""Waves: never more hosts down than the limit, every host once, canaries first, and whose fault a failure is."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.rollout.waves import (
    CANARIES,
    FIRST,
    LAST,
    Node,
    RunLimits,
    RunProgress,
    Turn,
    amount,
    bake_due,
    eligible,
    wave_numbers,
    waves_event,
)


@st.composite
def fleets(draw: st.DrawFn, cut: bool = False) -> list[Node]:
    """cut: an earlier run was cut, so that some hosts are found in the middle of their switch."""
    count = draw(st.integers(1, 14))
    return [_host(draw, order, cut) for order in range(count)]


def _host(draw: st.DrawFn, order: int, cut: bool) -> Node:
    is_down = cut and draw(st.booleans())
    domains = (draw(st.sampled_from(("gb200", "b200"))), draw(st.sampled_from(("rack:1", "rack:2", "rack:3"))))
    serving, shape = is_down or draw(st.booleans()), draw(st.sampled_from("ab"))
    return Node(f"h{order}", order, serving, shape, domains, FIRST if is_down else 0, is_down)


LIMITS = st.builds(
    RunLimits,
    st.dictionaries(st.sampled_from(("gb200", "b200", "rack:1", "rack:2")), st.integers(1, 4)),
    st.none() | st.integers(1, 4),
)


@given(fleets() | fleets(cut=True), LIMITS, st.integers(0, 10_000))
def test_every_host_switches_once_and_no_limit_is_passed(nodes: list[Node], limits: RunLimits, seed: int) -> None:
    chance, order = random.Random(seed), list[str]()
    by_name = {node.name: node for node in nodes}
    progress = RunProgress(dict.fromkeys(by_name, Turn.WAITING))
    numbers = wave_numbers(nodes, limits.wave)
    while any(turn is not Turn.DONE for turn in progress.turns.values()):
        names = eligible(nodes, progress, limits)
        for name in names:
            assert progress.turns[name] is Turn.WAITING
            if by_name[name].serving:
                assert numbers[name] <= progress.baked or numbers[name] == CANARIES
        order += names
        turns = dict(progress.turns) | dict.fromkeys(names, Turn.RUNNING)
        running = [node for node in nodes if turns[node.name] is Turn.RUNNING]
        joined = [node for node in nodes if node.is_down and turns[node.name] is not Turn.DONE]
        for domain in {domain for node in nodes for domain in node.domains}:
            down = sum(domain in node.domains and node.serving for node in {*running, *joined})
            found = sum(domain in node.domains for node in joined)
            assert down <= max(limits.down.get(domain, 1), found), "no host is down beyond those that were found down"
        if running:
            turns[chance.choice(running).name] = Turn.DONE
        progress = replace(progress, turns=turns)
        due = bake_due(nodes, progress, limits.wave)
        assert running or due is not None, "it is stuck"
        if due is not None:
            progress = replace(progress, baked=due + 1)
    assert sorted(order) == sorted(by_name), "every host, once"


@given(fleets(), LIMITS)
def test_the_first_of_each_shape_goes_before_the_others(nodes: list[Node], limits: RunLimits) -> None:
    progress = RunProgress({node.name: Turn.WAITING for node in nodes})
    begun = eligible(nodes, progress, limits)
    first = {shape: next((n.name for n in nodes if n.shape == shape), None) for shape in "ab"}
    assert begun[0] == nodes[0].name
    shapes = [next(node.shape for node in nodes if node.name == name) for name in begun]
    assert len(shapes) == len(set(shapes))
    assert all(name in first.values() for name in begun) or any(first[shape] not in begun for shape in shapes), (
        "another host takes its place only where the limit holds the first one back"
    )


def row(count: int, serving: bool = True, shape: str = "a") -> list[Node]:
    return [Node(f"h{number}", number, serving, shape) for number in range(count)]


def test_a_labelled_host_is_the_canary_of_its_shape() -> None:
    nodes = [*row(3), Node("h3", 3, True, "a", rank=FIRST), Node("h4", 4, True, "b")]
    assert wave_numbers(nodes, 2) == {"h3": 0, "h4": 0, "h0": 1, "h1": 1, "h2": 2}
    progress = RunProgress({node.name: Turn.WAITING for node in nodes})
    assert eligible(nodes, progress, RunLimits({"all": 9})) == ["h3", "h4"]
    nodes[0] = replace(nodes[0], rank=LAST)
    assert wave_numbers(nodes, 2) == {"h3": 0, "h4": 0, "h1": 1, "h2": 1, "h0": 2}


def test_hosts_found_in_their_switch_are_joined_at_once_and_count_as_down() -> None:
    nodes = [Node(f"h{number}", number, True, is_down=number in (2, 4)) for number in range(5)]
    nodes = [replace(node, rank=FIRST if node.is_down else 0) for node in nodes]
    limits = RunLimits({"all": 2}, wave=2)
    assert wave_numbers(nodes, 2) == {"h2": 0, "h4": 0, "h0": 1, "h1": 1, "h3": 2}
    turns = {node.name: Turn.WAITING for node in nodes}
    assert eligible(nodes, RunProgress(turns), limits) == ["h2", "h4"]
    turns |= {"h2": Turn.RUNNING}
    assert eligible(nodes, RunProgress(turns), limits) == ["h4"]
    turns |= {"h2": Turn.DONE}
    assert eligible(nodes, RunProgress(turns, baked=1), limits) == ["h4", "h0"]
    turns |= {"h4": Turn.RUNNING}
    assert eligible(nodes, RunProgress(turns, baked=1), limits) == ["h0"]


def test_hosts_that_do_not_serve_go_together_after_the_canary() -> None:
    nodes = row(5, serving=False)
    progress = RunProgress({node.name: Turn.WAITING for node in nodes})
    assert eligible(nodes, progress, RunLimits({})) == ["h0"]
    running = replace(progress, turns={**progress.turns, "h0": Turn.RUNNING})
    assert eligible(nodes, running, RunLimits({})) == []
    done = replace(progress, turns={**progress.turns, "h0": Turn.DONE})
    assert eligible(nodes, done, RunLimits({})) == ["h1", "h2", "h3", "h4"]


def test_a_wave_waits_for_the_bake_of_the_one_before() -> None:
    nodes, limits = row(5), RunLimits({"all": 9}, wave=2)
    assert wave_numbers(nodes, 2) == {"h0": 0, "h1": 1, "h2": 1, "h3": 2, "h4": 2}
    turns = {node.name: Turn.WAITING for node in nodes} | {"h0": Turn.DONE}
    assert eligible(nodes, RunProgress(turns), limits) == []
    assert bake_due(nodes, RunProgress(turns), 2) == 0
    assert eligible(nodes, RunProgress(turns, baked=1), limits) == ["h1", "h2"]
    turns |= {"h1": Turn.DONE, "h2": Turn.RUNNING}
    assert bake_due(nodes, RunProgress(turns, baked=1), 2) is None


def test_a_host_that_is_lost_counts_as_down() -> None:
    nodes = row(3)
    turns = {"h0": Turn.DONE, "h1": Turn.FAILED, "h2": Turn.WAITING}
    assert eligible(nodes, RunProgress(turns, frozenset({"h1"}), baked=1), RunLimits({})) == []
    assert eligible(nodes, RunProgress(turns, frozenset({"h1"}), baked=1), RunLimits({"all": 2})) == ["h2"]


@pytest.mark.parametrize(
    ("text", "of", "number"), [("3", 40, 3), ("25%", 40, 10), ("10%", 4, 1), ("0", 40, 1), ("100%", 7, 7)]
)
def test_amounts(text: str, of: int, number: int) -> None:
    assert amount(text, of) == number


@given(fleets(), LIMITS)
def test_the_record_is_told_every_host_once_with_the_canaries_first(nodes: list[Node], limits: RunLimits) -> None:
    event = waves_event(nodes, limits)
    numbers = wave_numbers(nodes, limits.wave)
    assert [[numbers[name] for name in names] for names in event["waves"]] == [
        [number] * len(names) for number, names in zip(sorted(set(numbers.values())), event["waves"], strict=True)
    ]
    assert sorted(name for names in event["waves"] for name in names) == sorted(numbers)
    for domain, limit in event["down"].items():
        assert limit["limit"] == limits.down.get(domain, 1)
        assert set(limit["hosts"]) == {node.name for node in nodes if node.serving and domain in node.domains}
