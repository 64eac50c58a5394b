"""Which source a host asks, in which order, and when again."""

from __future__ import annotations

from rackwright.hostside.hand_on.choice import LONGEST_PAUSE, NEAR, OTHERS, PAUSE, SETTLE, SourceChoice
from rackwright.hostside.hand_on.failures import NoPiecesError
from rackwright.hostside.hand_on.spec import SourceHost


class Clock:
    """A time that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def choice(count: int) -> tuple[SourceChoice, Clock, list[SourceHost]]:
    clock = Clock()
    hosts = [SourceHost(f"host-{number}", f"10.0.0.{number + 2}", 7461) for number in range(count)]
    return SourceChoice(hosts, clock), clock, hosts


def test_at_the_start_only_the_neighbour_is_asked_and_then_others_too() -> None:
    chosen, clock, hosts = choice(3)
    assert list(chosen.candidates(begins=True)) == hosts[:1]
    assert list(chosen.candidates(begins=False)) == hosts
    clock.now += SETTLE
    assert list(chosen.candidates(begins=True)) == hosts


def test_every_source_has_its_turn_and_a_round_stays_short() -> None:
    chosen, _, hosts = choice(40)
    rounds = [list(chosen.candidates(begins=False)) for _ in range(40 // OTHERS)]
    assert all(len(one) == NEAR + OTHERS for one in rounds)
    assert all(one[:NEAR] == hosts[:NEAR] for one in rounds)
    assert {source for one in rounds for source in one} == set(hosts)


def test_the_present_source_comes_first() -> None:
    chosen, _, hosts = choice(10)
    assert chosen.take(hosts[7])
    assert not chosen.take(hosts[7])
    assert next(iter(chosen.candidates(begins=False))) == hosts[7]
    chosen.leave()
    assert next(iter(chosen.candidates(begins=False))) == hosts[0]


def test_a_source_that_fails_is_left_alone_longer_each_time() -> None:
    chosen, clock, hosts = choice(2)
    pauses = []
    for _ in range(9):
        chosen.fail(hosts[0], NoPiecesError("gone"))
        start = clock.now
        while hosts[0] not in chosen.candidates(begins=False):
            clock.now += PAUSE
        pauses.append(clock.now - start)
    assert pauses[:3] == [PAUSE, 2 * PAUSE, 4 * PAUSE]
    assert pauses[-1] == LONGEST_PAUSE
    assert chosen.why(8) == "host-0: gone"
    chosen.take(hosts[0])
    chosen.fail(hosts[0], NoPiecesError("gone"))
    clock.now += PAUSE
    assert hosts[0] in chosen.candidates(begins=False)


def test_a_source_that_is_left_out_is_named_until_another_one_gives() -> None:
    chosen, _, hosts = choice(3)
    chosen.take(hosts[0])
    assert chosen.before(hosts[0]) == hosts[1:]
    assert not chosen.before(hosts[2])
    chosen.leave_out(hosts[0], passing=True)
    assert list(chosen.candidates(begins=False)) == hosts[1:]
    assert chosen.passing == hosts[0].address
    chosen.take(hosts[1])
    assert chosen.passing == ""


def test_a_source_that_was_wrong_is_not_asked_again() -> None:
    chosen, _, hosts = choice(3)
    chosen.drop(["host-0"])
    assert list(chosen.candidates(begins=False)) == hosts[1:]
    assert chosen.is_neighbour(hosts[1])
    assert not chosen.before(hosts[0])


def test_a_source_that_has_nothing_yet_is_left_and_keeps_its_place() -> None:
    chosen, _, hosts = choice(3)
    chosen.take(hosts[0])
    chosen.leave_out(hosts[0], passing=False)
    assert list(chosen.candidates(begins=False)) == hosts[1:]
    assert chosen.passing == ""


def test_a_host_that_was_passed_knows_it_and_one_whose_turn_another_has_does_not() -> None:
    chosen, _, hosts = choice(3)
    chosen.give_way(hosts[0], passed=False)
    assert not chosen.is_late
    chosen.give_way(hosts[0], passed=True)
    chosen.give_way(hosts[1], passed=False)
    assert chosen.is_late
    assert "host-1: it serves another host" in chosen.why(8)
