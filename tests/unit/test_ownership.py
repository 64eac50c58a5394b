"""The ownership record never names less than what is there, wherever a change is cut; and a second run converges."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rackwright.concerns.apply import Batch, perform_all
from rackwright.paths import OWNED
from rackwright.plan.change import Change, Guarded, Job, Owned, Refuse, Shell, Step, WriteFile
from rackwright.plan.ownership import OwnershipRecord
from rackwright.remote.errors import TakenBackError


class CutError(Exception):
    """The control process dies, or its connection is lost."""


@dataclass
class FakeHost:
    """A host on which steps add and remove belongings; it is cut at one of its steps, before or after its effect."""

    real: set[Owned] = field(default_factory=set)
    record: set[Owned] = field(default_factory=set)
    cut_at: int | None = None
    after: bool = False
    done: int = 0

    def do(self, batch: Batch) -> None:
        for step in batch:
            self._do(step)

    def _do(self, step: Step) -> None:
        cut = self.done == self.cut_at
        self.done += 1
        if cut and not self.after:
            raise CutError
        self._apply(step)
        # What is there without an entry is an orphan for good: asserted at every moment, not only at the end.
        assert self.real <= self.record
        if cut:
            raise CutError

    def _apply(self, step: Step) -> None:
        if isinstance(step, WriteFile):
            assert step.path == OWNED
            self.record = {Owned(**entry) for entry in json.loads(str(step.content))["owned"]}
        elif isinstance(step, Shell):
            verb, kind, name = step.script.split()
            (self.real.add if verb == "add" else self.real.discard)(Owned(kind, name))
        elif isinstance(step, Refuse):
            raise CutError


THINGS = [Owned("unit", "u"), Owned("model", "m"), Owned("group_member", "docker:ops"), Owned("package", "p")]
SETS = st.frozensets(st.sampled_from(THINGS))


def change_to(host: FakeHost, wanted: frozenset[Owned]) -> Change:
    """Return the change that a reading of the host would ask for: missing entries are added, superfluous ones go."""
    adds, gone = wanted - host.real, (host.real | host.record) - wanted
    steps = [Shell(f"add {one.kind} {one.name}") for one in sorted(adds)]
    steps += [Shell(f"remove {one.kind} {one.name}") for one in sorted(gone)]
    return Change("change", "", tuple(steps), owns=tuple(adds), disowns=tuple(gone))


@given(SETS, SETS, st.integers(0, 12), st.booleans())
def test_cut_anywhere_nothing_is_orphaned_and_the_next_run_converges(
    before: frozenset[Owned], wanted: frozenset[Owned], cut_at: int, after: bool
) -> None:
    host = FakeHost(set(before), set(before), cut_at, after)
    with suppress(CutError):
        perform_all(change_to(host, wanted), OwnershipRecord(before), host.do)
    assert host.real <= host.record
    host.cut_at = None
    perform_all(change_to(host, wanted), OwnershipRecord(frozenset(host.record)), host.do)
    assert host.real == host.record == wanted


@example([frozenset({THINGS[1]}), frozenset(), frozenset({THINGS[1]})], 3, True)
@given(st.lists(SETS, min_size=2, max_size=4), st.integers(0, 12), st.booleans())
def test_a_process_that_lives_on_after_a_failed_step_orphans_nothing_either(
    aims: list[frozenset[Owned]], cut_at: int, after: bool
) -> None:
    host = FakeHost(cut_at=cut_at, after=after)
    record = OwnershipRecord(frozenset())
    for wanted in [*aims, aims[-1]]:
        with suppress(CutError):
            perform_all(change_to(host, wanted), record, host.do)
        assert host.real <= host.record
    assert host.real <= host.record


def scripts(change: Change, owned: Sequence[Owned]) -> list[str]:
    """Return what reaches the host, in order; the record's writes by the names in it."""
    sent: list[str] = []

    def do(batch: Batch) -> None:
        for step in batch:
            if isinstance(step, WriteFile):
                sent.append("record " + ",".join(entry["name"] for entry in json.loads(str(step.content))["owned"]))
            elif isinstance(step, Shell):
                sent.append(step.script)

    perform_all(change, OwnershipRecord(frozenset(owned)), do)
    return sent


def test_what_is_added_is_recorded_before_and_what_is_removed_after_it_is_gone() -> None:
    unit, member = THINGS[0], THINGS[2]
    change = Change("c", "", (Shell("step"),), owns=(unit,), disowns=(member,))
    assert scripts(change, [member]) == ["record docker:ops,u", "step", "record u"]


def test_a_change_that_owns_nothing_new_writes_no_record() -> None:
    assert scripts(Change("c", "", (Shell("step"),), owns=(THINGS[0],)), [THINGS[0]]) == ["step"]


def test_what_is_refused_is_not_recorded() -> None:
    host = FakeHost()
    with pytest.raises(CutError):
        perform_all(
            Change("c", "", (Refuse("no", code="RW0101"),), owns=(THINGS[0],)), OwnershipRecord(frozenset()), host.do
        )
    assert host.record == set()


def test_what_the_host_has_taken_back_is_struck_from_the_record() -> None:
    record, written = OwnershipRecord(frozenset({THINGS[1]})), []

    def do(batch: Batch) -> None:
        if isinstance(batch[0], WriteFile):
            written.append(batch[0].content)
        else:
            raise TakenBackError("taken back")

    with pytest.raises(TakenBackError):
        perform_all(Change("c", "", (Guarded("c", "", "", 1),), owns=(THINGS[0], THINGS[1])), record, do)
    assert len(written) == 2, "the record lies as it lay before"
    assert record.owned == {THINGS[1]}


@pytest.mark.parametrize("after", [False, True])
def test_a_record_that_the_host_has_not_acknowledged_is_written_again(after: bool) -> None:
    host, record = FakeHost(cut_at=0, after=after), OwnershipRecord(frozenset())
    change = Change("c", "", (Shell("add unit u"),), owns=(THINGS[0],))
    with pytest.raises(CutError):
        perform_all(change, record, host.do)
    assert record.owned == {THINGS[0]}, "it may be there"
    perform_all(change, record, host.do)
    assert host.record == host.real == {THINGS[0]}


def test_simple_steps_go_together_and_any_other_alone() -> None:
    sent: list[list[type[Step]]] = []
    steps = (Shell("a"), WriteFile("/f", ""), Job("j", "", ""), Shell("b"), Guarded("g", "", "", 1), Shell("c"))
    perform_all(
        Change("c", "", steps, owns=(THINGS[0],), disowns=(THINGS[1],)),
        OwnershipRecord(frozenset({THINGS[1]})),
        lambda batch: sent.append([type(step) for step in batch]),
    )
    assert sent == [[WriteFile, Shell, WriteFile], [Job], [Shell], [Guarded], [Shell, WriteFile]]
