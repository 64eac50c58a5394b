"""The record of a run, and how a rollout's exit status follows from it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rackwright.cli.runs import lines
from rackwright.masks import MASK
from rackwright.messages import RackwrightError
from rackwright.processes import this_process
from rackwright.record import journal
from rackwright.record.ending import result
from rackwright.record.handover import VARIABLE, Handover
from rackwright.record.journal import append, chosen_record, new_record, note, read_record, records
from rackwright.record.record import hosts_in, record_of
from rackwright.record.view.live_run import GrowingRecord as Growing
from rackwright.rollout.begin_event import without_secrets


def test_events_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = new_record(tmp_path, "rollout")
    append(path, "host", host="h1", state="switched", text="two\nlines", figure=None)
    (event,) = read_record(path)
    assert event.pop("time").endswith("+00:00")
    assert event == {"kind": "host", "host": "h1", "state": "switched", "text": "two\nlines"}
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_line_that_a_crash_has_cut_is_left_out(tmp_path: Path) -> None:
    path = new_record(tmp_path, "rollout")
    append(path, "begin", who="me")
    path.write_text(path.read_text() + '{"kind": "ho')
    assert [event["kind"] for event in read_record(path)] == ["begin"]


def test_a_line_that_was_cut_takes_no_other_with_it(tmp_path: Path) -> None:
    path = new_record(tmp_path, "rollout")
    append(path, "begin", who="me")
    growing = Growing(path)
    path.write_text(path.read_text() + '{"kind": "ho')
    kinds = [event["kind"] for event in growing.new_events()]
    append(path, "resumed", by="r2")
    append(path, "end", status=0, text="x")
    assert [event["kind"] for event in read_record(path)] == ["begin", "resumed", "end"]
    assert kinds + [event["kind"] for event in growing.new_events()] == ["begin", "resumed", "end"]


def test_an_event_that_is_written_in_part_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = new_record(tmp_path, "rollout")
    whole = os.write
    monkeypatch.setattr(os, "write", lambda file, text: whole(file, text[:10]))
    with pytest.raises(OSError, match="only a part of the event host"):
        append(path, "host", host="h1", state="switched")
    monkeypatch.undo()
    append(path, "end", status=0, text="x")
    assert [event["kind"] for event in read_record(path)] == ["end"]


def test_runs_of_one_second_have_records_of_their_own_in_their_order(tmp_path: Path) -> None:
    made = [new_record(tmp_path, purpose) for purpose in ("teardown", "rollback", "deploy", "deploy")]
    assert records(tmp_path) == made
    assert chosen_record(tmp_path, "last") == made[-1]
    assert chosen_record(tmp_path, made[1].stem) == made[1]
    with pytest.raises(RackwrightError, match="next: rackwright runs"):
        chosen_record(tmp_path, "nosuch")


def test_old_records_go_with_all_that_carries_their_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "KEPT", 3)
    folder = tmp_path / "runs"
    journal.make_folder(folder)
    for number in range(4):
        (folder / f"20260101-00000{number}-deploy.jsonl").touch()
        (folder / f"20260101-00000{number}-deploy.html").touch()
        (folder / f"20260101-00000{number}-deploy").mkdir()
    new = new_record(tmp_path, "rollout")
    retained = ["20260101-000002-deploy", "20260101-000003-deploy"]
    assert records(tmp_path) == [*(folder / f"{name}.jsonl" for name in retained), new]
    assert sorted(path.name for path in folder.glob("2026010*")) == sorted(
        f"{name}{end}" for name in retained for end in ("", ".html", ".jsonl")
    )
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / ".gitignore").read_text() == "*\n"


def test_a_record_that_cannot_be_written_fails_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, Handover(record=str(tmp_path / "gone" / "run.jsonl")).text)
    note("host", host="h1")
    note("host", host="h2")
    assert capsys.readouterr().err.count("has gaps") == 1


@pytest.mark.parametrize(
    ("key", "value", "recorded"),
    [
        ("port", 8001, 8001),
        ("engine", {"stream_interval": 2}, {"stream_interval": 2}),
        ("environment", {"HF_TOKEN": "hf_x", "LEVEL": "info"}, {"HF_TOKEN": MASK, "LEVEL": "info"}),
        ("arguments", ["--api_key=abc"], [f"--api_key={MASK}"]),
        ("proxy", {"http": "http://me:word@proxy:3128"}, {"http": f"http://{MASK}@proxy:3128"}),
    ],
)
def test_a_record_keeps_no_secret_of_the_command_line(key: str, value: object, recorded: object) -> None:
    assert without_secrets(key, value) == recorded


def test_nothing_is_written_outside_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    note("host", host="h1")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv(VARIABLE, Handover(record=str(tmp_path / "run.jsonl")).text)
    note("host", host="h1")
    assert json.loads((tmp_path / "run.jsonl").read_text())["host"] == "h1"


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"time": "2026-01-01T00:00:00.000+00:00", "kind": kind, **fields}


EVENTS = [
    event("begin", who="me@here", what="rollout inventory/b200.py"),
    event("phase", name="rollout"),
    event("host", host="h1", state="switching", before={"llm": "aaa"}),
    event("host", host="h1", state="switched"),
    event("host", host="h2", state="switching", before={"llm": "bbb"}),
    event("host", host="h2", state="rolled back"),
    event("failure", host="h2", cause="check", check="a chat answer", wave=1),
    event("host", host="h3", state="not switched"),
    event("phase", name="rolling back"),
    event("host", host="h1", state="switched"),
]


def test_a_phase_is_read_by_itself() -> None:
    forward = result(EVENTS, "rollout")
    assert forward.states == {"h1": "switched", "h2": "rolled back", "h3": "not switched"}
    assert forward.before["h1"] == {"llm": "aaa"}
    assert forward.judgement.is_the_releases
    assert forward.failed == ["h2"]
    assert result(EVENTS, "rolling back").states == {"h1": "switched"}


def test_a_record_says_what_became_of_each_host_text() -> None:
    found = record_of("r", EVENTS)
    assert found.states == {"h1": "taken back", "h2": "rolled back", "h3": "not switched"}
    assert found.counts() == "1 taken back, 1 rolled back, 1 not switched"
    assert found.before == {"h1": {"llm": "aaa"}, "h2": {"llm": "bbb"}}


def test_a_run_without_an_end_says_how_to_go_on_text() -> None:
    begun = this_process()
    gone = {**begun, "pid": begun["pid"], "started": -1}
    away = {**begun, "machine": "elsewhere"}

    def outcome(*more: dict[str, Any], process: dict[str, Any] = gone) -> str:
        return record_of("r", [event("begin", process=process), *EVENTS[1:], *more]).outcome

    assert outcome() == "was cut; next: rackwright resume r"
    assert outcome(process=begun) == "still under way"
    assert outcome(event("process", process=begun)) == "still under way"
    assert outcome(process=away) == "no end yet: ask elsewhere"
    assert outcome(event("resumed", by="r2")) == "was cut; continued as r2"
    assert outcome(event("end", status=3, text="stopped"), process=begun) == "exit 3: stopped"


@pytest.mark.parametrize(
    ("category", "hosts"),
    [
        ("failed", ["h2"]),
        ("left", ["h1", "h2", "h3", "h4"]),
        ("taken-back", ["h1"]),
        ("not-switched", ["h3"]),
        ("switched", []),
    ],
)
def test_hosts_by_how_they_ended(category: str, hosts: list[str]) -> None:
    names = ["h1", "h2", "h3", "h4", "h5"]
    more = event("host", host="h5", state="unchanged")
    assert hosts_in(record_of("r", [event("begin", hosts=names), *EVENTS[1:], more]), category) == hosts


def test_a_run_is_told_line_by_line_text() -> None:
    row = event("row", host="h1", row="speed", mark="proved", seen="0.8 ms", figure=0.000824796875)
    failure = event("host", host="h2", state="rolled back", text="two\nlines", diff="-a")
    printed = list(
        lines(record_of("r", [*EVENTS, row, failure]), [*EVENTS, row, event("progress", host="h1"), failure])
    )
    assert printed[0] == "r: rollout inventory/b200.py, by me@here"
    assert "00:00:00  h1  row  speed  proved  0.8 ms  figure 0.0008248" in printed
    assert printed[-2] == "00:00:00  h2  host  rolled back  two | lines"
    assert not [text for text in printed if "progress" in text]
