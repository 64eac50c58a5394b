"""`rackwright top`: the readings as they are parsed, the rows as they are ranked, and the picture as text."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from rackwright.concerns.marks import MARKS
from rackwright.inspect.top.counters import counters_row
from rackwright.inspect.top.fleet import HostNow, needs_status, rate
from rackwright.inspect.top.host_sample import EngineNow, HostSample, JobNow, parse_sample
from rackwright.inspect.top.page import page
from rackwright.inspect.top.rows import TopRow, merged, rows_of
from rackwright.inspect.top.screen import Title, draw, fitting
from rackwright.messages import ReadingError
from rackwright.paths import ACTS, ENGINE_STATES, ENGINES_PAUSED
from rackwright_engines.load_counters import COUNTERS
from tests.unit.made_up_fleets import NOW, busy_looks, fleet_of, host_now, status_row

FRAMES = Path(__file__).parents[1] / "fixtures" / "top"
TIME = datetime(2026, 11, 27, 3, 30, tzinfo=UTC)
TITLE = Title("inventory/b200.py", TIME, "q ends")


def rows(fleet: Sequence[HostNow], now: float = NOW) -> list[TopRow]:
    return rows_of(fleet, now, TIME)


def picture(shown: Sequence[TopRow], height: int = 24, width: int = 80) -> list[str]:
    text = io.StringIO()
    console = Console(file=text, width=width, height=height, force_terminal=True, color_system=None)
    console.print(draw(shown, TITLE, height, width))
    return text.getvalue().splitlines()


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


READING = f"""\
uptime 500.25
file {MARKS}/sick-llm word=down
file {MARKS}/sick-llm since=2026-11-27 03:00:00
file {MARKS}/sick-llm reason=three restarts in 20 min
file {ENGINE_STATES}/llm state=hung
file {ENGINE_STATES}/llm signs=no step for 130 s
file {ACTS}/acts-llm 1795748400 restart ok it answered again
file {ENGINES_PAUSED} 4100
file {ENGINES_PAUSED} who=ops@deploy1
job switch-llm 480.25 {b64("draining: requests open: 2")}
job pull-1 499.25
engine llm code 200
engine llm tokens 1100.000
engine llm waiting 1.000
"""


def test_a_reading_is_parsed() -> None:
    look = parse_sample(READING.splitlines())
    assert look.engines == {"llm": EngineNow(200, 1100.0, None, 1)}
    assert look.jobs == (JobNow("switch-llm", 20.0, "draining: requests open: 2"), JobNow("pull-1", 1.0, ""))
    assert [(mark.kind, mark.endpoint, mark.reason) for mark in look.marks] == [
        ("sick", "llm", "three restarts in 20 min")
    ]
    assert look.watch["llm"]["state"] == "hung"
    assert (look.acts["llm"].kind, look.acts["llm"].text) == ("restart", "ok it answered again")
    assert look.pause is not None
    assert look.pause.seconds == 3599


@pytest.mark.parametrize(
    "text",
    [
        "uptime 5\nfile\nfile x\njob\njob a\njob a b c\nengine llm tokens nan\nengine llm code -1\nengine llm",
        f"uptime 5\nfile {ACTS}/acts-llm soon restart\nfile {MARKS}/a/b x=y\njob switch-llm 1 !!!",
        "uptime 5\nengine llm running 1e300",
    ],
)
def test_what_makes_no_sense_is_left_out(text: str) -> None:
    look = parse_sample(text.splitlines())
    assert look.uptime == 5
    assert all(engine.tokens is None for engine in look.engines.values())
    assert not look.acts


def test_without_its_clock_nothing_is_a_reading() -> None:
    with pytest.raises(ReadingError, match="RW0802"):
        parse_sample(["engine llm code 200"])


@given(st.lists(st.text(max_size=60), max_size=12))
def test_no_text_of_a_host_acts_on_a_terminal(lines: list[str]) -> None:
    text = "".join(lines).replace("\n", " ")
    found = parse_sample(
        ["uptime 9", f"file {MARKS}/sick-llm reason={text}", f"file {ENGINE_STATES}/llm signs={text}", *lines]
    )
    host = host_now("gpu001", [found])
    host.lose(text) if len(lines) % 2 else None
    assert all(char.isprintable() for row in picture(rows([host])) for char in row)


def test_a_rate_is_the_difference_of_two_readings_and_none_after_a_restart_of_the_engine() -> None:
    host = host_now("gpu001")
    assert rate(host, "llm") == 50.0
    host.add(HostSample(504.0, {"llm": EngineNow(200, 10.0)}), None, NOW)
    assert rate(host, "llm") is None
    host.add(HostSample(506.0, {"llm": EngineNow(200, 30.0)}), None, NOW)
    assert rate(host, "llm") == 10.0
    host.add(HostSample(508.0, {"llm": EngineNow(0)}), None, NOW)
    assert rate(host, "llm") is None
    host.add(HostSample(3.0, {"llm": EngineNow(200, 900.0)}), None, NOW)
    assert rate(host, "llm") is None, "the host was restarted"


def test_status_is_read_again_when_it_is_old_or_a_look_contradicts_it() -> None:
    host = host_now("gpu001")
    assert not needs_status(host, NOW + 5)
    assert needs_status(host, NOW + 61)
    host.add(HostSample(506.0, {"llm": EngineNow(503)}), None, NOW)
    assert needs_status(host, NOW + 5)
    assert needs_status(HostNow("gpu002"), NOW)


def test_status_is_read_again_once_a_job_has_ended() -> None:
    host = host_now("gpu001", busy_looks(jobs=(JobNow("switch-llm", 20.0, ""),)))
    assert not needs_status(host, NOW + 5)
    host.add(HostSample(506.0, {"llm": EngineNow(200)}), None, NOW)
    assert needs_status(host, NOW + 5)
    host.add(HostSample(508.0, {"llm": EngineNow(200)}), [status_row("gpu001")], NOW)
    assert not needs_status(host, NOW + 5)


def test_a_member_of_several_hosts_is_not_asked_for_its_own_answer() -> None:
    row = status_row("gpu002", head="gpu001")
    host = host_now("gpu002", [HostSample(500.0, {"llm": EngineNow(0)})], [row])
    assert not needs_status(host, NOW + 5)
    assert rows([host])[0].state == "serving"


def test_the_worst_stands_first() -> None:
    states = [row.state for row in rows(fleet_of(6))]
    assert states == ["lost", "hung", "drained", "serving", "serving", "serving"]


@pytest.mark.parametrize(("hosts", "height", "width"), [(6, 24, 80), (6, 24, 140), (200, 24, 80), (200, 50, 130)])
def test_a_picture_is_as_it_was_looked_at(hosts: int, height: int, width: int) -> None:
    text = "".join(f"{row.rstrip()}\n" for row in picture(rows(fleet_of(hosts)), height, width))
    assert text == (FRAMES / f"{hosts}-hosts-{width}x{height}.txt").read_text()


@pytest.mark.parametrize("width", [80, 120])
def test_two_hundred_hosts_are_readable_worst_first(width: int) -> None:
    text = picture(rows(fleet_of(200)), 24, width)
    assert len(text) < 24
    states = [row.split()[1] for row in text[4:] if row.startswith("gpu")]
    assert states == ["lost", "hung", "drained"]
    (serving,) = [row for row in text[4:] if " serving " in row]
    assert serving.split()[:2] == ["197", "hosts"]
    assert {"9,850", "394", "197"} <= set(serving.split())


@given(st.integers(4, 60), st.integers(8, 50), st.integers(40, 200))
def test_it_always_fits_the_terminal(hosts: int, height: int, width: int) -> None:
    lines = picture(rows(fleet_of(hosts)), height, width)
    assert len(lines) <= height
    assert all(len(row) <= width for row in lines)


def test_where_even_equal_ones_have_no_room_the_rest_is_counted() -> None:
    fleet = [host_now(f"gpu{n:03}", rows=[status_row(f"gpu{n:03}", release=f"{n:012}")]) for n in range(50)]
    shown, others = fitting(rows(fleet), 10, wide=False)
    assert (len(shown), len(others)) == (9, 41)
    assert "41" in picture(rows(fleet), 16)[-1]


def test_what_a_host_does_is_said_in_the_words_of_the_live_view() -> None:
    jobs = (
        JobNow("switch-llm", 20.0, "draining: requests open: 2"),
        JobNow("model-x", 5.0, "3.0 GiB of 6.0 GiB (50%)"),
    )
    (row,) = rows([host_now("gpu001", busy_looks(jobs=jobs))])
    assert (row.state, row.tone) == ("draining", "busy")
    assert [fact.kind for fact in row.facts] == ["draining", "downloading"]
    assert row.facts[1].text.startswith("downloading 50 %, 5 s")


def test_a_job_of_another_endpoint_is_the_hosts() -> None:
    (row,) = rows([host_now("gpu001", busy_looks(jobs=(JobNow("switch-big-llm", 1.0, ""),)))])
    assert row.state == "serving"


def test_marks_acts_pause_and_signs_are_facts() -> None:
    look = parse_sample(READING.splitlines())
    (row,) = rows([host_now("gpu001", [look])])
    kinds = ["draining", "sick", "signs", "downloading", "act restart", "paused"]
    assert [fact.kind for fact in row.facts] == kinds


def test_an_act_before_a_proven_switch_is_not_shown() -> None:
    look = parse_sample(READING.replace("restart ok it answered again", "clear ok proven").splitlines())
    (row,) = rows([host_now("gpu001", [look])])
    assert not any(fact.kind.startswith("act") for fact in row.facts)


def test_an_engine_that_stopped_answering_is_not_serving_any_longer() -> None:
    (row,) = rows([host_now("gpu001", [*busy_looks(), HostSample(506.0, {"llm": EngineNow(0)})])])
    assert (row.state, row.tone) == ("no answer", "bad")


def test_a_host_without_a_reading_for_a_while_is_silent() -> None:
    (row,) = rows([host_now("gpu001")], NOW + 25)
    assert (row.state, row.facts[0].text) == ("silent", "no reading for 25 s")


def test_a_sick_engine_stays_named_while_it_makes_readings_slow() -> None:
    sample = HostSample(500.0, {"llm": EngineNow(0)})
    (row,) = rows([host_now("gpu001", [sample], [status_row("gpu001", "sick")])], NOW + 25)
    assert (row.state, row.tone, row.facts[0].kind) == ("sick", "bad", "silent")


def test_equal_rows_are_one_with_their_sums() -> None:
    behind, alike = merged(rows([host_now("a"), host_now("b"), host_now("c", rows=[status_row("c", wanted=False)])]))
    assert (alike.hosts, alike.rate, alike.running) == (("a", "b"), 100.0, 4)
    assert behind.hosts == ("c",)


@pytest.mark.parametrize(
    ("engine", "version", "options", "path"),
    [
        ("tensorrt-llm", "1.1.0rc0", {}, "-"),
        ("tensorrt-llm", "1.2.0", {}, "-"),
        ("tensorrt-llm", "1.2.0", {"return_perf_metrics": True}, "http://127.0.0.1:8000/prometheus/metrics"),
        ("vllm", "0.33.0", {}, "http://127.0.0.1:8000/metrics"),
        ("sglang", "0.5.23", {"enable-metrics": True}, "http://127.0.0.1:8000/metrics"),
    ],
)
def test_tensorrt_llms_json_metrics_are_never_read(
    engine: str, version: str, options: dict[str, bool], path: str
) -> None:
    endpoint = SimpleNamespace(engine_kind=engine, version=version, engine=options, arguments=())
    row = counters_row(endpoint, "http://127.0.0.1:8000")  # type: ignore[arg-type]
    assert row.split()[0] == path
    assert row.split()[1] == COUNTERS[engine].tokens


def test_a_page_escapes_what_hosts_say() -> None:
    host = host_now("gpu001")
    host.lose("<script>alert(1)</script>")
    text = page(rows([host, host_now("gpu002")]), TITLE)
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text
    assert "default-src" in text
