"""The downloads of a run: how far, how fast, what is stalled, live and in the report."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from rackwright.record.journal import Event
from rackwright.record.view.downloads import curves, fleet_downloads, fleet_rate, stalled_for
from rackwright.record.view.report import downloads
from rackwright.record.view.report.page import page
from rackwright.record.view.screen import facts
from rackwright.record.view.timeline import Timeline
from rackwright.record.view.timeline_events import add_event, timeline_of
from tests.unit.made_up_runs import BEGIN, event

MIB = 1 << 20
START = BEGIN.timestamp()


def begin(*hosts: str) -> list[Event]:
    return [event(0, "begin", who="ops", what="deploy", hosts=list(hosts))]


def job(after: float, host: str, state: str, name: str = "model-a") -> Event:
    return event(after, "job", host=host, job=name, title="fetch a/b", state=state)


def bytes_event(after: float, host: str, done: int, rate: float, stalled: int | None = None) -> Event:
    fields = {"stalled": stalled} if stalled else {}
    text = f"{done} MiB of 100 MiB ({done}%), {rate} MiB/s"
    values = {"part": done / 100, "bytes": done * MIB, "of": 100 * MIB, "rate": rate * MIB}
    return event(after, "progress", host=host, job="model-a", phase="downloading", text=text, **values, **fields)


def two_hosts() -> Timeline:
    """Return a run in which one host downloads evenly, and another has stalled for 20 s."""
    return timeline_of(
        [
            *begin("h1", "h2"),
            job(0, "h1", "began"),
            job(0, "h2", "began"),
            bytes_event(10, "h1", 20, 2.0),
            bytes_event(10, "h2", 10, 1.0),
            bytes_event(20, "h1", 40, 2.0),
            bytes_event(30, "h2", 10, 0.0, stalled=20),
            bytes_event(30, "h1", 60, 2.0),
        ]
    )


def test_the_fleet_is_as_far_as_its_hosts_and_names_those_that_are_stalled() -> None:
    found = fleet_downloads(two_hosts(), START + 40)
    assert found is not None
    assert (found.hosts, found.done, found.total) == (2, 70 * MIB, 200 * MIB)
    assert found.stalled == ("h2 (30 s)",)
    assert found.rate == 2 * MIB, "what is stalled brings nothing"
    assert found.remaining == 130 / 2


def test_the_head_of_the_live_view_says_so_text() -> None:
    text = next(row for row in facts(two_hosts(), START + 40) if row.startswith("downloads"))
    assert text == "downloads: 70.0 MiB of 200.0 MiB on 2 hosts, 2.0 MiB/s, about 1:05 to go, stalled: h2 (30 s)"


def test_nothing_is_said_while_nothing_downloads() -> None:
    assert fleet_downloads(timeline_of(begin("h1")), START) is None
    ended = timeline_of([*begin("h1"), job(0, "h1", "began"), bytes_event(5, "h1", 50, 1.0), job(9, "h1", "done")])
    assert fleet_downloads(ended, START + 9) is None


def test_a_stall_ends_with_the_next_byte_and_the_longest_is_kept() -> None:
    rows = [*begin("h1"), job(0, "h1", "began"), bytes_event(10, "h1", 10, 1.0), bytes_event(30, "h1", 10, 0, 15)]
    stalled = timeline_of(rows)
    assert stalled_for(stalled.hosts["h1"], START + 35) == 20
    moving = timeline_of([*rows, bytes_event(40, "h1", 20, 1.0)])
    assert stalled_for(moving.hosts["h1"], START + 45) == 0
    assert moving.hosts["h1"].fetches["model-a"].longest_stall == 25


def test_the_curve_of_a_host_ends_with_all_of_its_bytes() -> None:
    rows = [*begin("h1"), job(0, "h1", "began"), bytes_event(10, "h1", 20, 2.0), job(50, "h1", "done")]
    (curve,) = curves(timeline_of(rows))
    assert curve.points == ((10.0, 20 * MIB), (50.0, 100 * MIB))


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(0, 100)), min_size=2, max_size=40))
def test_the_fleets_rate_is_made_of_the_bytes_that_came(points: list[tuple[int, int]]) -> None:
    times, sizes = sorted(at for at, _ in points), sorted(done for _, done in points)
    rows = [bytes_event(at, "h1", done, 1.0) for at, done in zip(times, sizes, strict=True)]
    timeline = timeline_of([*begin("h1"), job(0, "h1", "began"), *rows])
    found = fleet_rate(timeline)
    if len(set(times)) > 1:
        width = found[1][0] - found[0][0] if len(found) > 1 else 0
        (curve,) = curves(timeline)
        came = curve.points[-1][1] - curve.points[0][1]
        assert abs(sum(rate for _, rate in found) * width - came) <= came * 0.1 + MIB


def test_the_report_draws_the_hosts_and_the_rate_and_has_a_row_a_download_text() -> None:
    rows = [job(45, "h1", "done"), job(60, "h2", "failed"), event(60, "end", status=1, text="x")]
    timeline = two_hosts()
    for row in rows:
        add_event(timeline, row)
    text = page(timeline, "20261127-1")
    assert len(re.findall("<polyline", text)) == 3
    assert "100.0 MiB" in text
    table = downloads.rows(timeline)
    assert [(row.host, row.took, row.stall) for row in table] == [("h2", "1:00", "50 s"), ("h1", "45 s", "")]


def test_a_run_without_bytes_has_no_picture() -> None:
    timeline = timeline_of([*begin("h1"), job(0, "h1", "began", "pull-x"), job(9, "h1", "done", "pull-x")])
    assert downloads.charts(timeline) is None
    assert "<polyline" not in page(timeline, "x")
    assert "fetch a/b" in page(timeline, "x")
