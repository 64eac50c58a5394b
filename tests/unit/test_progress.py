"""How far a job is, from what it prints; and that the record gets few events of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.plan.jobstream import Event
from rackwright.record.progress import (
    DOWNLOADING,
    DRAINING,
    LOADING,
    PROVING,
    VERIFYING,
    Calm,
    Meter,
    Progress,
    TimeToGo,
    parse_line,
)
from rackwright.remote.fleet_progress import FleetProgress


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("  512.0 MiB of 2.0 GiB (25%), 95.1 MiB/s", Progress(DOWNLOADING, 0.25, 512 << 20, 2 << 30, 95.1 * (1 << 20))),
        ("verifying: 1 MiB of 4 MiB (25%), 2 MiB/s", Progress(VERIFYING, 0.25, 1 << 20, 4 << 20, 2 << 20)),
        (
            "layers: 4 of 8 fetched, 2 unpacked, 120 MiB in flight, 8 s",
            Progress(DOWNLOADING, 0.375, state="layers: 4 of 8 fetched, 2 unpacked, 120 MiB in flight"),
        ),
        ("layers: 8 of 8 fetched, 2 unpacked, 0 MiB in flight, 8 s", Progress(DOWNLOADING, 0.625)),
        (
            "layers: 4 of 8 fetched, 2 unpacked, 120 MiB in flight, 8 s; 1.5 GiB of 3.0 GiB (50%), 8.0 MiB/s",
            Progress(DOWNLOADING, 0.5, 3 << 29, 3 << 30, float(8 << 20)),
        ),
        ("layers: 0 of 0 fetched, 0 unpacked, 0 MiB in flight, 4 s", Progress(DOWNLOADING, None)),
        ("draining: requests open: 3, connections: 5, waiting up to 30 s", Progress(DRAINING)),
        ("loading, 15 s: Loading weights", Progress(LOADING)),
        ("ready after 12 s", Progress(PROVING)),
        ("try 1 failed (timeout); again in 2 s", None),
        ("", None),
    ],
)
def test_what_a_line_says(text: str, found: Progress | None) -> None:
    assert parse_line(text) == found


def progress_line(percent: int) -> str:
    return f"{percent}.0 MiB of 100.0 MiB ({percent}%), 9.9 MiB/s"


def test_a_phase_is_told_at_once_and_a_crawling_bar_rarely() -> None:
    meter = Meter()
    assert meter.progress_fields("draining: requests open: 1, connections: 2, waiting up to 30 s", 0.0)
    assert meter.progress_fields("loading, 5 s: x", 0.1)
    assert not meter.progress_fields("loading, 10 s: x", 5.0)
    assert meter.progress_fields("loading, 20 s: x", 15.1)
    assert not meter.progress_fields("nothing of the kind", 99.0)


@given(st.lists(st.tuples(st.integers(0, 100), st.floats(0, 0.5)), max_size=400))
def test_no_download_gets_more_than_its_share_of_events(steps: list[tuple[int, float]]) -> None:
    meter, now, count = Meter(), 0.0, 0
    for percent, pause in sorted(steps):
        now += pause
        count += meter.progress_fields(progress_line(percent), now) is not None
    assert count <= 52 + now / 15


def test_the_end_of_a_download_is_told() -> None:
    meter = Meter()
    meter.progress_fields(progress_line(99), 0.0)
    assert meter.progress_fields(progress_line(100), 1.0) == {
        "phase": DOWNLOADING,
        "part": 1.0,
        "text": progress_line(100),
        "bytes": 100 << 20,
        "of": 100 << 20,
        "rate": round(9.9 * (1 << 20)),
        "stalled": None,
    }


def still_line(rate: str) -> str:
    return f"50.0 MiB of 100.0 MiB (50%), {rate} MiB/s"


def test_a_download_without_a_byte_is_reported_as_stalled_and_once_it_moves_again() -> None:
    meter = Meter()
    assert meter.progress_fields(still_line("3.0"), 0.0)
    found = {now: meter.progress_fields(still_line("0.0"), float(now)) for now in range(2, 16, 2)}
    stalls = {now: fields["stalled"] for now, fields in found.items() if fields}
    assert stalls == {12: 10}
    moving = meter.progress_fields(still_line("1.0"), 16.5)
    assert moving is not None
    assert moving["stalled"] is None


def test_the_rate_of_an_event_is_the_mean_of_the_lines_since_the_one_before() -> None:
    meter = Meter()
    meter.progress_fields(still_line("3.0"), 0.0)
    assert not meter.progress_fields(still_line("1.0"), 2.0)
    fields = meter.progress_fields(still_line("5.0"), 15.0)
    assert fields is not None
    assert fields["rate"] == 3 << 20


@pytest.mark.parametrize(("fetched", "stalls"), [(3, True), (8, False)])
def test_an_image_stalls_only_while_layers_are_fetched(fetched: int, stalls: bool) -> None:
    meter = Meter()
    texts = [f"layers: {fetched} of 8 fetched, 2 unpacked, 5 MiB in flight, {now} s" for now in range(0, 40, 4)]
    found = [meter.progress_fields(text, 4.0 * number) for number, text in enumerate(texts)]
    assert any(fields["stalled"] for fields in found if fields) is stalls


def test_how_far_a_job_is_is_printed_every_half_minute_and_all_else_at_once() -> None:
    now = [100.0]
    calm = Calm(lambda: now[0])
    printed = []
    for second in range(70):
        now[0] = 100.0 + second
        printed += [second] if calm.says(Event("progress", f"loading, {second} s: x")) else []
        assert calm.says(Event("progress", "no byte came for 10 s; trying again"))
        assert calm.says(Event("progress", "ready after 5 s"))
        assert calm.says("a line")
        assert calm.says(Event("row", "a question"))
    assert printed == [0, 30, 60]


# -- how long it takes still, where lines stay on the screen


def test_a_line_of_bytes_says_how_long_it_takes_still_text() -> None:
    pace = TimeToGo()
    assert pace.with_remaining("10.0 MiB of 100.0 MiB (10%), 2.0 MiB/s").endswith(", about 45 s to go")
    assert pace.with_remaining("10.0 MiB of 100.0 MiB (10%), 0.0 MiB/s").endswith(", about 90 s to go"), "the mean"
    assert pace.with_remaining("1.0 GiB of 100.0 GiB (1%), 100.0 MiB/s").endswith(", about 50 min to go")
    assert pace.with_remaining("ready after 12 s") == "ready after 12 s"
    assert TimeToGo().with_remaining("10.0 MiB of 100.0 MiB (10%), 0.0 MiB/s").endswith("0.0 MiB/s")


def test_a_stall_is_told_where_lines_stay_once_it_begins_and_then_every_half_minute_text() -> None:
    now = [100.0]
    pace, calm = TimeToGo(lambda: now[0]), Calm(lambda: now[0])
    printed = []
    for second in range(0, 60, 2):
        now[0] = 100.0 + second
        rate = "0.0" if 4 <= second < 56 else "2.0"
        text = pace.with_remaining(f"10.0 MiB of 100.0 MiB (10%), {rate} MiB/s")
        printed += [(second, text)] if calm.says(Event("progress", text), pace.stalled) else []
    assert [second for second, _ in printed] == [0, 14, 44, 56]
    assert printed[1][1].endswith("0.0 MiB/s, stalled: no byte for 10 s")
    assert printed[2][1].endswith("stalled: no byte for 40 s")
    assert printed[3][1].endswith(" to go"), "it moves again"


def test_two_hosts_are_summed_up_every_half_minute_and_a_stalled_one_is_named_text() -> None:
    fleet = FleetProgress()
    assert fleet.note("h1", "model-a", still_line("2.0"), 0.0) == "", "one host says it itself"
    assert fleet.note("h0", "hand-on-model-a", still_line("2.0"), 0.5) == "", "it hands on what it has"
    first = fleet.note("h2", "model-a", still_line("0.0"), 1.0)
    assert first == "downloads: 100.0 MiB of 200.0 MiB on 2 hosts, 2.0 MiB/s, about 50 s to go"
    assert fleet.note("h2", "model-a", still_line("0.0"), 20.0) == ""
    second = fleet.note("h1", "model-a", still_line("2.0"), 32.0)
    assert second.endswith(", stalled: h2")
    fleet.forget("h2", "model-a")
    assert fleet.note("h1", "model-a", still_line("2.0"), 99.0) == ""
