"""The end of a drain: from the host's event to the record, and from there into the report."""

from __future__ import annotations

import pytest

from rackwright.plan.drain_end import DrainEnd, parse_drain
from rackwright.record.view.report import page
from rackwright.record.view.timeline_events import timeline_of
from tests.unit.made_up_runs import event


def test_the_event_of_a_host_is_read() -> None:
    assert parse_drain("llm 3 600 gw1 10.0.0.5") == DrainEnd("llm", 3, 600, ("gw1", "10.0.0.5"))
    assert parse_drain("llm unknown 5") == DrainEnd("llm", None, 5)


@pytest.mark.parametrize("text", ["", "llm", "llm 1", "llm 1 x", "llm 1 -2", "llm 1 9999999999", "llm 1 \u0663"])
def test_other_text_is_not(text: str) -> None:
    assert parse_drain(text) is None


def test_the_report_counts_what_was_cut() -> None:
    events = [
        event(0, "begin", hosts=["a", "b"]),
        event(1, "drained", host="a", **DrainEnd("llm", 2, 600, ("gw1",)).fields),
        event(2, "drained", host="b", **DrainEnd("llm", 1, 30).fields),
        event(3, "drained", host="b", **DrainEnd("x", None, 3).fields),
        event(4, "drained", host="b", endpoint="x", seconds="never"),
    ]
    timeline = timeline_of(events)
    assert timeline.cut == 3
    assert timeline.hosts["a"].drains == [DrainEnd("llm", 2, 600, ("gw1",))]
    text = page(timeline, "run")
    assert ("<dt>requests cut</dt><dd>3</dd>" in text, "gw1" in text) == (True, True)
    assert "requests cut" not in page(timeline_of(events[:1]), "run")
