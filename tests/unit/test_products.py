"""Every case that `make test` leaves to `make proof` has its reason."""

from __future__ import annotations

import pytest

from tests.lab.products import in_proof, with_proof, without_reason


def test_all_but_a_few_cases_are_left_with_a_reason() -> None:
    params, remaining = with_proof(["a", ("b", 1)], {"a"}, "the same")
    assert (params.values, params.marks) == (("a",), ())
    assert (remaining.values, [mark.args for mark in remaining.marks]) == (("b", 1), [("the same",)])


def test_one_of_the_few_that_is_no_case_is_an_error() -> None:
    with pytest.raises(ValueError, match="no such case"):
        with_proof(["a"], {"b"}, "the same")


class Item:
    """As much of a collected test as is asked."""

    def __init__(self, nodeid: str, *marks: pytest.MarkDecorator) -> None:
        self.nodeid, self.marks = nodeid, marks

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return [mark.mark for mark in self.marks if mark.name == name]


def test_a_mark_without_a_word_is_found() -> None:
    items = [Item("a", pytest.mark.proof), Item("b", in_proof("why")), Item("c"), Item("d", in_proof(" "))]
    assert without_reason(items) == ["a", "d"]  # type: ignore[arg-type]
