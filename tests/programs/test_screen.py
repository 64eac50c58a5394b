"""The live view: what it shows of a run, that it fits the terminal, and what is printed once it has ended."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from rackwright.record.journal import Event, append, new_record
from rackwright.record.view.live_run import GrowingRecord, follow, unshown_errors
from rackwright.record.view.screen import chosen, draw, facts, headline, tightest
from rackwright.record.view.timeline import Timeline
from rackwright.record.view.timeline_events import add_event, timeline_of
from tests import texts
from tests.unit.made_up_runs import event, made_up, recorded


def picture(timeline: Timeline, height: int = 24, width: int = 120, now: float | None = None) -> list[str]:
    text = io.StringIO()
    console = Console(file=text, width=width, height=height, force_terminal=True, color_system=None)
    console.print(draw(timeline, timeline.now or 0.0 if now is None else now, height, width))
    return text.getvalue().splitlines()


def part_of(events: list[Event], until: str, **fields: object) -> Timeline:
    """Return the timeline up to the first event of a kind with these fields."""
    for number, one in enumerate(events, 1):
        if one["kind"] == until and all(one.get(key) == value for key, value in fields.items()):
            return timeline_of(events[:number])
    raise AssertionError(until)


def test_a_download_is_a_bar() -> None:
    lines = picture(part_of(made_up(3), "progress", host="gpu001", part=0.4))
    (bar,) = [bar for bar in lines if bar.startswith("gpu001")]
    assert "downloading" in bar
    assert "━━━━" in bar
    assert "no estimate yet" in lines[1]


def test_a_wave_is_in_the_header() -> None:
    timeline = part_of(made_up(40, wave=10), "progress", phase="loading", host="gpu012")
    lines = picture(timeline)
    assert f"wave 2 of 4 · {texts.THROUGH.format(over=11, hosts=40)}" in lines[0]
    assert "to go" in lines[1]
    assert "down 4 of at most 4 (b200)" in lines[1]
    assert any(row.startswith("gpu012") and "loading" in row for row in lines)


def test_canaries_and_bakes_have_their_words() -> None:
    events = recorded("good")
    timeline = part_of(events, "waves")
    assert headline(timeline) == f"canaries, then 2 waves · {texts.THROUGH.format(over=0, hosts=3)}"
    one = replace(timeline, waves=timeline.waves[:2])
    assert headline(one).startswith("canaries, then 1 wave ·")
    baking = part_of(events, "bake")
    assert baking.now is not None
    assert "watching canaries for 2 s more" in list(facts(baking, baking.now))
    names = {row.split()[0]: row.split()[1] for row in picture(baking) if row.startswith("lab-")}
    assert names["lab-lived1"] == "watching"
    assert "watching" not in "".join(picture(baking, now=baking.now + 3))
    assert headline(timeline_of(recorded("rolled-back"))).startswith("rolling back")


def test_the_tightest_limit_is_told() -> None:
    down = {"all": {"limit": 9, "hosts": ["h1", "h2"]}, "rack:1": {"limit": 1, "hosts": ["h1"]}}
    timeline = timeline_of([event(0, "waves", waves=[["h1"], ["h2"]], down=down)])
    assert tightest(timeline) == "down 0 of at most 1 (rack:1)"
    add_event(timeline, event(1, "host", host="h1", state="switching"))
    assert tightest(timeline) == "down 1 of at most 1 (rack:1)"
    assert tightest(Timeline()) == ""


def test_where_not_all_fit_failed_and_busy_hosts_go_first() -> None:
    timeline = part_of(made_up(200, bad=2), "host", host="gpu199", state="rolled back")
    shown, remaining = chosen(timeline, 15)
    assert (len(shown), len(remaining)) == (14, 186)
    names = [host.name for host in shown]
    assert names == sorted(names)
    assert "gpu199" in names
    busy = [host for host in [*shown, *remaining] if host.state == "switching"]
    assert {host.name for host in busy} <= set(names)
    assert picture(timeline)[-2].startswith("and 183 more: ")


@pytest.mark.parametrize("width", [60, 80, 100])
def test_the_head_is_whole_in_a_narrow_terminal(width: int) -> None:
    timeline = part_of(made_up(40, wave=10, bad=1), "bake", wave=1)
    head = " ".join(picture(timeline, width=width)[: 2 * 2])
    for wanted in [*facts(timeline, timeline.now or 0.0), headline(timeline), timeline.what]:
        assert wanted in head


@given(st.integers(1, 60), st.integers(8, 50), st.integers(30, 200), st.floats(0, 1))
def test_it_always_fits_the_terminal(hosts: int, height: int, width: int, share: float) -> None:
    events = made_up(hosts, bad=1)
    lines = picture(timeline_of(events[: int(len(events) * share)]), height, width)
    assert len(lines) < height
    assert all(len(row) <= width for row in lines)


@given(st.text(max_size=40))
def test_no_text_of_a_host_moves_the_cursor(text: str) -> None:
    timeline = timeline_of([event(0, "begin", what=text, hosts=[text]), event(1, "stage", host=text, changes=[text])])
    assert all(char.isprintable() for row in picture(timeline) for char in row)


def test_a_record_is_read_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"kind": "a"}\n{"kind": "b"')
    record = GrowingRecord(path)
    assert [one["kind"] for one in record.new_events()] == ["a"]
    assert list(record.new_events()) == []
    with path.open("ab") as file:
        file.write(b'}\n[1]\nnonsense\n{"kind": "c"}\n')
    assert [one["kind"] for one in record.new_events()] == ["b", "c"]


def test_after_the_view_failures_are_told_in_full() -> None:
    printed = "\n".join([*(f"    [h1]   line {number}" for number in range(40)), "    [h2] fine", "    [h1] it broke"])
    events = [event(0, "error", host="h1", text="it broke"), event(1, "error", host="h3", text="no room\nfree some")]
    events.append(event(2, "host", host="h2", state="not switched", text="not switched: h1 failed before it"))
    lines = list(unshown_errors(events, 1, printed))
    assert lines[0] == "h1:"
    assert "    it broke" in lines
    assert "      line 39" in lines
    assert "      line 10" not in lines, "only the last lines"
    assert lines[-3:] == ["h3:", "    no room", "    free some"]
    assert not any("fine" in row for row in lines)


def test_an_error_is_told_whatever_its_words() -> None:
    events = [event(0, "error", host="h1", text="not switched on: its PSU")]
    assert list(unshown_errors(events, 1, "")) == ["h1:", "    not switched on: its PSU"]


def test_a_host_that_was_not_reached_is_told_of() -> None:
    why = "Could not connect (no route)"
    printed = f"    [h1] {why}\n" + "    [h2] fine\n" * 99
    lines = list(unshown_errors([event(0, "host", host="h1", state="unreachable")], 1, printed))
    assert lines == ["h1:", f"    {why}"]
    assert list(unshown_errors([event(0, "host", host="h1", state="unreachable")], 1, "")) == ["h1:", "    unreachable"]


def test_what_failed_before_any_host_is_told_as_it_was_printed() -> None:
    printed = "--> pyinfra error: no such inventory"
    assert list(unshown_errors([], 1, printed)) == [printed]
    assert list(unshown_errors([], 0, "all well")) == []


# -- with a process


WORK = """
import json, os, sys, time
path = os.environ["RECORD"]
def note(kind, **fields):
    with open(path, "a") as file:
        file.write(json.dumps({"time": "2026-01-01T08:00:00+00:00", "kind": kind, **fields}) + "\\n")
print("    [h1] hello from pyinfra", flush=True)
note("stage", host="h1", concern="image", changes=["pull x"])
"""
FAILS = WORK + 'note("error", host="h1", text="it broke")\nprint("    [h1] it broke")\nsys.exit(1)'
LASTS = (
    "import signal; signal.signal(signal.SIGTERM, signal.default_int_handler)\n"
    + WORK
    + "\ntry:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('    [h1] bye')\n    sys.exit(130)"
)


@pytest.mark.parametrize("view", [True, False])
def test_the_status_is_that_of_pyinfra(tmp_path: Path, view: bool, capfd: pytest.CaptureFixture[str]) -> None:
    record = new_record(tmp_path, "rollout")
    environment = {**os.environ, "RECORD": str(record)}
    assert follow([sys.executable, "-c", FAILS], tmp_path, environment, record, view) == 1
    shown = capfd.readouterr().out
    log = record.with_suffix(".log")
    assert "it broke" in shown
    assert log.exists() == view
    if view:
        assert log.stat().st_mode & 0o777 == 0o600
        assert log.read_text() == "".join(f"    [h1] {text}\n" for text in ("hello from pyinfra", "it broke"))


DRIVER = """
import os, sys
from dataclasses import replace
from pathlib import Path
from rackwright.record.view.live_run import follow
record = Path(sys.argv[1])
try:
    follow([sys.executable, "-c", sys.argv[2]], record.parent, {**os.environ, "RECORD": str(record)}, record, True)
except KeyboardInterrupt:
    print("stopped", flush=True)
    sys.exit(130)
"""


@pytest.mark.parametrize(
    ("number", "everybody"), [(signal.SIGINT, True), (signal.SIGINT, False), (signal.SIGTERM, False)]
)
def test_a_signal_ends_both_and_leaves_the_terminal_as_it_was(
    tmp_path: Path, number: signal.Signals, everybody: bool
) -> None:
    record = new_record(tmp_path, "rollout")
    append(record, "begin", what="rollout x", hosts=["h1"])
    control, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(record), LASTS],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment,
        start_new_session=True,
    )
    os.close(terminal)
    received: list[bytes] = []
    reader = threading.Thread(target=_read, args=(control, received), daemon=True)
    reader.start()
    _until(lambda: b"staging" in b"".join(received))
    if everybody:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    assert process.wait(40) == 130
    reader.join(5)
    shown = b"".join(received)
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l")
    assert shown.rstrip().endswith(b"stopped")
    assert record.with_suffix(".log").read_text().endswith("bye\n")


def _read(control: int, received: list[bytes]) -> None:
    try:
        while data := os.read(control, 65536):
            received.append(data)
    except OSError:  # the other side is closed
        return


def _until(true: object, seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_view_that_cannot_be_drawn_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    record = new_record(tmp_path, "rollout")
    monkeypatch.setattr("rackwright.record.view.screen.draw", lambda *_: json.loads("nonsense"))
    environment = {**os.environ, "RECORD": str(record)}
    work = WORK + "time.sleep(1)"
    assert follow([sys.executable, "-c", work], tmp_path, environment, record, True) == 0
    assert "the view has ended" in capfd.readouterr().out
