"""A run that was stopped from outside: its last sentence goes by what its record has."""

from __future__ import annotations

import pytest

from rackwright.record.record import DRAIN, FORWARD, TEARDOWN
from rackwright.rollout.launch import DONE_IN_PART, FINISHING, NOTHING_BEGUN, what_remains


@pytest.mark.parametrize(
    ("purpose", "kinds", "text"),
    [
        (TEARDOWN, ["phase", "process"], DONE_IN_PART),
        (TEARDOWN, [], NOTHING_BEGUN),
        (DRAIN, ["process", "job"], FINISHING),
        (FORWARD, ["phase", "process"], NOTHING_BEGUN),
        (FORWARD, ["process", "stage"], DONE_IN_PART),
        (FORWARD, ["process", "stage", "job"], FINISHING),
    ],
)
def test_a_stopped_run_denies_no_change_that_it_has_made(purpose: str, kinds: list[str], text: str) -> None:
    events = [{"kind": "begin", "purpose": purpose}, *({"kind": kind} for kind in kinds)]
    assert what_remains(events) == text
