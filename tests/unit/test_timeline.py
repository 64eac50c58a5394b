"""What a run's record tells of its hosts, whatever the order or state of its events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rackwright.record.durations import typical_switch
from rackwright.record.journal import Event
from rackwright.record.progress import DOWNLOADING, DRAINING, LOADING, PROVING, ROLLING_BACK
from rackwright.record.states import RunState
from rackwright.record.view.blame import consequences, culprits
from rackwright.record.view.estimate import remaining
from rackwright.record.view.report.page import page
from rackwright.record.view.timeline import STAGING, WAITING, HostTimeline, Timeline
from rackwright.record.view.timeline_events import add_event, timeline_of
from tests.unit.made_up_runs import event, made_up, recorded


def phases(host: HostTimeline) -> list[str]:
    found = [span.phase for span in host.spans]
    return [phase for number, phase in enumerate(found) if number == 0 or found[number - 1] != phase]


def test_a_good_rollout_of_a_lab() -> None:
    timeline = timeline_of(recorded("good"))
    assert [host.state for host in timeline.hosts.values()] == ["switched"] * 3
    assert [host.wave for host in timeline.hosts.values()] == [0, 1, 2]
    assert phases(timeline.hosts["lab-lived2"]) == [STAGING, WAITING, PROVING, DRAINING, LOADING, PROVING]
    assert all(span.end is not None for host in timeline.hosts.values() for span in host.spans)
    assert [name for name, _ in timeline.marks] == ["canaries", "wave 1", "wave 2"]
    assert timeline.hosts["lab-lived1"].rows["llm", "speed"].figure_before is not None
    assert "stream_interval" in timeline.hosts["lab-lived1"].diffs[0]
    assert (timeline.status, timeline.wave) == (0, None)
    assert 50 < timeline.duration < 60


def test_a_first_rollout_shows_its_downloads() -> None:
    host = timeline_of(recorded("first")).hosts["lab-lived1"]
    assert phases(host)[:3] == [STAGING, DOWNLOADING, STAGING]
    assert any(change.startswith("install") for change in host.changes)


def test_a_release_that_is_taken_back() -> None:
    timeline = timeline_of(recorded("rolled-back"))
    assert {name: host.state for name, host in timeline.hosts.items()} == {
        "lab-lived1": RunState.TAKEN_BACK,
        "lab-lived2": "rolled back",
        "lab-lived3": "not switched",
    }
    assert phases(timeline.hosts["lab-lived2"])[-1] == ROLLING_BACK
    assert phases(timeline.hosts["lab-lived1"])[-1] == ROLLING_BACK
    assert timeline.hosts["lab-lived1"].wave == 0
    assert timeline.hosts["lab-lived2"].rows["llm", "a tool call"].mark == "refused"
    assert "no tool call came back" in timeline.hosts["lab-lived2"].errors[0]
    assert [name for name, _ in timeline.marks] == ["canaries", "wave 1", "rolling back"]


def test_where_a_host_stands_while_it_switches() -> None:
    job = {"host": "h1", "job": "switch-llm", "title": "switch endpoint llm"}
    timeline = timeline_of([event(0, "begin", hosts=["h1", "h2"]), event(1, "waves", waves=[["h1"], ["h2"]])])
    host = timeline.hosts["h1"]

    def after(*args: Any, **fields: Any) -> tuple[str, str]:
        add_event(timeline, event(*args, **fields))
        return host.state, host.phase

    assert (host.state, host.phase, host.message) == (WAITING, WAITING, "for its turn: canaries")
    assert after(2, "host", host="h1", state="switching") == (RunState.SWITCHING, PROVING)
    assert "turn" not in host.message
    assert after(3, "job", **job, state="began") == (RunState.SWITCHING, DRAINING), "its hook may run now"
    assert after(4, "progress", host="h1", job="switch-llm", phase=DRAINING, text="draining: 1") == (
        RunState.SWITCHING,
        DRAINING,
    )
    assert after(5, "progress", host="h1", job="switch-llm", phase=LOADING, text="loading, 5 s") == (
        RunState.SWITCHING,
        LOADING,
    )
    assert after(6, "job", **job, state="done") == (RunState.SWITCHING, PROVING)
    assert after(7, "progress", host="h1", job="switch-llm", phase=ROLLING_BACK, text="rolling back")[1] == ROLLING_BACK
    assert after(8, "progress", host="h1", job="switch-llm", phase=LOADING, text="loading, 5 s")[1] == ROLLING_BACK
    add_event(timeline, event(9, "row", host="h1", row="a chat answer", mark="proved"))
    assert (host.phase, host.rows) == (ROLLING_BACK, {})
    assert host.message.startswith("proved: a chat answer")
    assert after(10, "host", host="h1", state="rolled back", text="why\nmore") == ("rolled back", "")
    assert (host.took, host.message, host.errors) == (8, "why", ["why\nmore"])
    assert timeline.hosts["h2"].state == WAITING
    assert timeline.wave == 1


def test_a_bar_goes_with_its_download() -> None:
    timeline = timeline_of([event(0, "job", host="h1", job="pull-x", title="pull x", state="began")])
    add_event(timeline, event(1, "progress", host="h1", job="pull-x", phase=DOWNLOADING, part=0.4, text="40%"))
    assert (timeline.hosts["h1"].part, timeline.hosts["h1"].phase) == (0.4, DOWNLOADING)
    add_event(timeline, event(2, "job", host="h1", job="pull-x", title="pull x", state="done"))
    assert (timeline.hosts["h1"].part, timeline.hosts["h1"].phase) == (None, "")


def test_an_error_while_staging_is_a_host_s_last_word_text() -> None:
    timeline = timeline_of([event(0, "stage", host="h1", concern="image", changes=["pull x"])])
    add_event(timeline, event(1, "error", host="h1", text="pull x: failed\nthe disk is full"))
    assert timeline.hosts["h1"].state == RunState.FAILED
    assert timeline.hosts["h1"].is_bad
    add_event(
        timeline, event(2, "host", host="h1", state="failed before its switch", text="pull x: failed\nthe disk is full")
    )
    assert timeline.hosts["h1"].errors == ["pull x: failed\nthe disk is full"]


LATE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("stage", {"concern": "retention", "changes": ["remove image x"]}),
    ("job", {"job": "rest-llm", "title": "x", "state": "began"}),
    ("job", {"job": "pull-x", "title": "x", "state": "began"}),
    ("progress", {"job": "pull-x", "phase": DOWNLOADING, "part": 0.1, "text": "10%"}),
    ("row", {"row": "still serving", "mark": "proved", "seen": "x"}),
    ("error", {"text": "RW0101: x"}),
    ("waves", {"waves": [["h1"]]}),
    ("bake", {"wave": 0, "seconds": 5, "hosts": ["h1"]}),
)


@pytest.mark.parametrize("state", sorted(set(RunState) - {"no word yet", "staging", "waiting"}))
@pytest.mark.parametrize("late", LATE, ids=lambda one: one[0])
def test_no_late_event_lowers_what_became_of_a_host(state: str, late: tuple[str, dict[str, Any]]) -> None:
    kind, fields = late
    first = [event(0, "begin", hosts=["h1"]), event(1, "phase", name="rollout"), event(2, "waves", waves=[["h1"]])]
    timeline = timeline_of([*first, event(3, "host", host="h1", state=state), event(4, kind, host="h1", **fields)])
    assert timeline.hosts["h1"].state == state


def test_a_good_run_whose_switch_lets_an_image_go_has_nothing_that_went_wrong() -> None:
    stage = event(58, "stage", host="lab-lived1", concern="retention", changes=["remove image x"])
    *events, end = recorded("good")
    timeline = timeline_of([*events, {**stage, "time": end["time"]}, end])
    assert [host.state for host in timeline.hosts.values()] == ["switched"] * 3
    assert (culprits(timeline), consequences(timeline)) == ([], {})
    assert "remove image x" in timeline.hosts["lab-lived1"].changes


def test_who_died_while_its_wave_was_watched_is_the_cause() -> None:
    """It was taken back with the others."""
    text = "RW0439: the endpoint did not prove itself: still serving: the engine died"
    events = [
        event(0, "phase", name="rollout"),
        event(1, "host", host="h1", state="switched"),
        event(1, "host", host="h2", state="switched"),
        event(2, "error", host="h1", text=text),
        event(2, "host", host="h1", state="failed after its switch", text=text),
        event(2, "failure", host="h1", cause="check", check="still serving", wave=0, fault="the release's"),
        event(3, "phase", name="rolling back"),
        *(event(4, "host", host=name, state="switched") for name in ("h1", "h2")),
        event(5, "end", status=3, text="rolled back"),
    ]
    timeline = timeline_of(events)
    assert [host.name for host in culprits(timeline)] == ["h1"]
    assert consequences(timeline) == {RunState.TAKEN_BACK: ["h2"]}
    assert "the engine died" in page(timeline, "r").split('id="hosts"')[0]


def test_on_the_way_back_a_host_waits_once_more() -> None:
    timeline = timeline_of([event(0, "phase", name="rollout"), event(1, "host", host="h1", state="switched")])
    for one in (event(2, "phase", name="rolling back"), event(3, "waves", waves=[["h1"]])):
        add_event(timeline, one)
    assert timeline.hosts["h1"].state == WAITING


def test_a_run_that_was_cut_has_open_ends() -> None:
    events = recorded("good")
    timeline = timeline_of(events[: len(events) // 2])
    assert timeline.ended is None
    assert any(host.phase for host in timeline.hosts.values())
    assert timeline.duration > 0


def test_a_host_that_nothing_is_said_of_is_there() -> None:
    timeline = timeline_of([event(0, "begin", hosts=["h1"]), event(1, "end", status=1, text="x")])
    assert timeline.hosts["h1"].state == RunState.UNSEEN


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)
KINDS = ("begin", "phase", "stage", "job", "progress", "waves", "host", "row", "bake", "failure", "error", "end", "?")
KEYS = ("host", "state", "hosts", "waves", "down", "job", "title", "phase", "part", "text", "row", "mark", "figure")


@given(
    st.lists(
        st.fixed_dictionaries(
            {"kind": st.sampled_from(KINDS)},
            optional={
                "time": st.just("2026-01-01T08:00:00+00:00") | JSON,
                **{key: st.sampled_from(("h1", "switching", LOADING)) | JSON for key in (*KEYS, "name", "status")},
            },
        ),
        max_size=6,
    )
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_no_event_breaks_a_story(events: list[Event]) -> None:
    timeline = timeline_of([*made_up(3)[:20], *events])
    add_event(timeline, event(999, "host", host="gpu001", state="switched"))
    assert timeline.hosts["gpu001"].state in ("switched", RunState.TAKEN_BACK)


@given(st.permutations(made_up(4, wave=2, bad=1)))
def test_any_order_gives_spans_that_do_not_run_backwards(events: list[Event]) -> None:
    timeline = timeline_of(events)
    assert len(timeline.hosts) == 4
    for host in timeline.hosts.values():
        assert all(span.end is None or span.end >= span.start for span in host.spans)


@given(st.integers(0, 400))
def test_a_cut_line_is_left_out(cut: int) -> None:
    lines = [json.dumps(one) for one in made_up(2)]
    whole = timeline_of(json.loads(row) for row in lines[:-1])
    assert timeline_of([*map(json.loads, lines[:-1]), *_parsed(lines[-1][:cut])]).hosts.keys() == whole.hosts.keys()


def _parsed(text: str) -> list[Event]:
    try:
        return [json.loads(text)]
    except ValueError:
        return []


# -- the estimate


def test_there_is_no_estimate_before_the_first_switch_has_ended() -> None:
    events = made_up(40, wave=10)
    first = next(number for number, one in enumerate(events) if one.get("state") == "switched")
    before, after = timeline_of(events[:first]), timeline_of(events[: first + 1])
    assert before.now is not None
    assert remaining(before, before.now) is None
    assert after.now is not None
    assert remaining(after, after.now) is not None


def test_from_the_second_run_on_there_is_an_estimate_from_the_start() -> None:
    events = made_up(40, wave=10)
    first = next(number for number, one in enumerate(events) if one.get("state") == "switched")
    timeline = timeline_of(events[:first])
    assert timeline.now is not None
    timeline.typical = typical_switch([events])
    estimate, truth = remaining(timeline, timeline.now), timeline_of(events).ended
    assert estimate is not None
    assert truth is not None
    assert abs(estimate - (truth - timeline.now)) < (truth - timeline.now) / 2


def test_an_estimate_from_the_start_has_what_is_watched_between_the_waves() -> None:
    waves = event(1, "waves", waves=[["h1"], ["h2"], ["h3"]], bake=300)
    timeline = timeline_of([event(0, "begin", hosts=["h1", "h2", "h3"]), waves])
    timeline.typical = 20.0
    assert timeline.now is not None
    assert remaining(timeline, timeline.now) == 3 * 20 + 2 * 300


@pytest.mark.parametrize("share", [0.45, 0.6, 0.75, 0.9])
def test_an_estimate_is_near_what_it_takes(share: float) -> None:
    events = made_up(40, wave=10)
    whole = timeline_of(events)
    part = timeline_of(events[: int(len(events) * share)])
    assert part.now is not None
    assert whole.ended is not None
    estimate, truth = remaining(part, part.now), whole.ended - part.now
    assert estimate is not None
    assert abs(estimate - truth) < max(45, truth / 2), (estimate, truth)


def test_nothing_remains_at_the_end() -> None:
    timeline = timeline_of(recorded("good"))
    assert isinstance(timeline, Timeline)
    assert timeline.now is not None
    assert remaining(timeline, timeline.now + 100) == 0
