"""The record of a run, and how a rollout's exit status follows from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rackwright.commands.rollout import verdict
from rackwright.fleet import journal
from rackwright.fleet.journal import append, new_record, note, read_record, summary
from rackwright.fleet.running import AFTERWARDS, Result, result
from rackwright.fleet.waves import Fault


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


def test_two_runs_of_one_second_have_records_of_their_own(tmp_path: Path) -> None:
    assert len({new_record(tmp_path, "rollout") for _ in range(3)}) == 3


def test_nothing_is_written_outside_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(journal.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    note("host", host="h1")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv(journal.VARIABLE, str(tmp_path / "run.jsonl"))
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
    event("host", host="h2", state="went back"),
    event("failure", host="h2", check="a chat answer", wave=1, fault=Fault.RELEASE.value),
    event("host", host="h3", state="not switched"),
    event("phase", name="going back"),
    event("host", host="h1", state="switched"),
]


def test_a_phase_is_read_by_itself() -> None:
    forward = result(EVENTS, "rollout")
    assert forward.states == {"h1": "switched", "h2": "went back", "h3": "not switched"}
    assert forward.before["h1"] == {"llm": "aaa"}
    assert forward.is_the_releases
    assert forward.failed == ["h2"]
    assert result(EVENTS, "going back").states == {"h1": "switched"}


def test_a_summary_says_when_a_run_has_no_end() -> None:
    assert summary("r", EVENTS).end.startswith("no end")
    assert summary("r", [*EVENTS, event("end", status=3, text="stopped")]).end == "exit 3: stopped"
    assert summary("r", EVENTS).hosts == {"h1": "switched", "h2": "went back", "h3": "not switched"}


HOSTS = ("h1", "h2")
RELEASE, HOST = (Fault.RELEASE.value,), (Fault.HOST.value,)


@pytest.mark.parametrize(
    ("status", "forward", "backward", "code", "text"),
    [
        (0, Result({"h1": "switched", "h2": "unchanged"}), None, 0, "1 switched, 1 unchanged"),
        (0, Result({"h1": "switched"}), None, 1, "h2 did not come to their switch"),
        (1, Result({"h1": "switched", "h2": "switched"}), None, 1, "not everything was done"),
        (0, Result({"h1": "went back", "h2": "not switched"}, faults=RELEASE), None, 3, "was rolled back"),
        (
            1,
            Result({"h1": "switched", "h2": "went back"}, faults=RELEASE),
            Result({"h1": "switched"}),
            3,
            "rolled back",
        ),
        (1, Result({"h1": "switched", "h2": "went back"}, faults=RELEASE), Result({"h1": "went back"}), 4, "h1"),
        (1, Result({"h1": "nothing serves", "h2": "not switched"}, faults=RELEASE), None, 4, "hands needed on h1"),
        (1, Result({"h1": AFTERWARDS, "h2": "not switched"}, faults=RELEASE), Result({"h1": "switched"}), 3, "rolled"),
        (1, Result({"h1": AFTERWARDS, "h2": "not switched"}, faults=HOST), None, 4, "hands needed on h1"),
        (1, Result({"h1": "switching"}), None, 4, "hands needed on h1"),
        (1, Result({"h1": "switched", "h2": "failed"}, faults=HOST), None, 3, "stopped and held: h2 failed"),
    ],
)
def test_the_exit_status_comes_from_the_record(
    status: int, forward: Result, backward: Result | None, code: int, text: str
) -> None:
    found = verdict("inventory/b200.py", HOSTS, status, forward, backward)
    assert found[0] == code
    assert text in found[1]
