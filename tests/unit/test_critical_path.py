"""The chain that decided how long a first deploy took: what it waited for, and no more."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rackwright.record.journal import Event
from rackwright.record.progress import DOWNLOADING, LOADING, PROVING
from rackwright.record.view.critical_path import BETWEEN, critical_path, own_part
from rackwright.record.view.report.page import page
from rackwright.record.view.timeline import STAGING, Timeline
from rackwright.record.view.timeline_events import timeline_of

HOST = "h1"


def at(second: float, kind: str, **fields: Any) -> Event:
    return {"time": datetime.fromtimestamp(1e9 + second, UTC).isoformat(), "kind": kind, "host": HOST, **fields}


def job(begin: float, end: float, name: str, title: str, **fields: Any) -> list[Event]:
    return [
        at(begin, "job", job=name, title=title, state="began", **fields),
        at(end, "job", job=name, title=title, state="done"),
    ]


def first_deploy() -> Timeline:
    """Deploy at first: the image takes 50 s, one model, which waits for it, 120 s more; all else has ended earlier."""
    events = [
        at(0, "begin", hosts=[HOST], who="ops", what="deploy inventory/lab.py"),
        at(0, "stage", concern="docker", changes=["install docker"]),
        at(30, "stage", concern="image", changes=["pull"]),
        *job(30, 80, "pull-image", "pull image"),
        *job(31, 33, "fetch-o200k", "fetch o200k"),
        *job(31, 100, "model-draft", "fetch draft", after=["pull-image"]),
        *job(31, 200, "model-base", "fetch base", after=["pull-image"]),
        at(200, "stage", concern="release", changes=["write the release"]),
        at(204, "host", state="switching"),
        *job(204, 300, "switch-llm", "switch llm"),
        at(204, "progress", job="switch-llm", phase=LOADING, text="loading, 0 s"),
        at(290, "progress", job="switch-llm", phase=PROVING, text="ready after 86 s"),
        at(300, "host", state="switched"),
        at(300, "end", status=0, text="done"),
    ]
    return timeline_of(sorted(events, key=lambda event: str(event["time"])))


def test_each_piece_is_the_one_that_held_the_next_one_up() -> None:
    timeline = first_deploy()
    path = critical_path(timeline, timeline.hosts[HOST])
    assert [(piece.phase, piece.text, round(piece.seconds)) for piece in path] == [
        (STAGING, "docker", 30),
        (DOWNLOADING, "pull image", 50),
        (DOWNLOADING, "fetch base", 120),
        (STAGING, "release", 4),
        (LOADING, "switch llm", 86),
        (PROVING, "", 10),
    ]
    assert round(own_part(path), 2) == round((50 + 120 + 86) / 300, 2)


def test_a_host_downloads_until_the_last_of_its_downloads_has_ended() -> None:
    host = first_deploy().hosts[HOST]
    spans = [(span.phase, round(span.start - 1e9), round((span.end or 0) - 1e9)) for span in host.spans]
    assert (DOWNLOADING, 30, 200) in spans
    assert {name: round((fetch.end or 0) - 1e9) for name, fetch in host.fetches.items()} == {
        "pull-image": 80,
        "fetch-o200k": 33,
        "model-draft": 100,
        "model-base": 200,
    }


def test_time_in_which_nothing_is_known_to_go_on_is_told() -> None:
    events = [at(0, "begin", hosts=[HOST], who="ops", what="deploy"), *job(10, 20, "pull-image", "pull image")]
    timeline = timeline_of(events)
    path = critical_path(timeline, timeline.hosts[HOST])
    assert [(piece.phase, piece.seconds) for piece in path] == [(BETWEEN, 10), (DOWNLOADING, 10)]
    assert own_part(path) == 0.5


def test_several_downloads_are_as_far_as_the_slowest() -> None:
    begun = [at(0, "job", job=name, title=name, state="began") for name in ("model-a", "model-b")]
    events = [at(1, "progress", job="model-a", phase=DOWNLOADING, part=0.9, text="")]
    slow = [at(2, "progress", job="model-b", phase=DOWNLOADING, part=0.2, text="")]
    assert timeline_of([*begun, *events]).hosts[HOST].part == 0.9
    assert timeline_of([*begun, *events, *slow]).hosts[HOST].part == 0.2


def test_the_text_of_the_report_has_it() -> None:
    text = page(first_deploy(), "20260131-000000-deploy")
    assert "Its critical path: 85 % of it are its own downloads and its load." in text
    assert "fetch base" in text


def test_without_a_download_there_is_no_path_to_show() -> None:
    events = [at(0, "begin", hosts=[HOST], who="ops", what="deploy"), at(1, "stage", concern="docker", changes=["x"])]
    assert "critical path" not in page(timeline_of(events), "run")
    assert own_part([]) == 0
