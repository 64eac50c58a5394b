"""Endpoints of one host are asked the same questions: each keeps its own answers, wherever they are shown."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright.concerns.endpoint.proof.codes import CODES, OTHER, code_of
from rackwright.concerns.endpoint.switch.events import SwitchProgress
from rackwright.concerns.endpoint.switch.follow import RefusedError
from rackwright.hardware.bundle import BundledHost, bundle
from rackwright.hardware.page import page as hardware_page
from rackwright.hardware.page import values
from rackwright.plan.jobstream import Event as JobEvent
from rackwright.record.cause import Cause, Reason
from rackwright.record.journal import Event
from rackwright.record.view.report.figures import row_sums
from rackwright.record.view.report.page import page
from rackwright.record.view.timeline_events import timeline_of
from tests.unit.machines import settings
from tests.unit.made_up_runs import event
from tests.unit.test_transaction import GOOD, ROWS, judged

DRAFTS = "accepted drafts"
EAGLE = {"mark": "refused", "seen": "0 of 192 draft tokens accepted", "figure": 1.0}
PLAIN = {"mark": "proved", "seen": "48 of 48 draft tokens accepted", "figure": 4.0}


def switched(endpoint: str, at: float, named: bool, **answer: object) -> Iterator[Event]:
    """Switch an endpoint of h1 with one row. named: whether the row names its endpoint."""
    job = {"host": "h1", "job": f"switch-{endpoint}", "title": f"switch endpoint {endpoint}"}
    yield event(at, "job", **job, state="began")
    yield event(at + 1, "row", host="h1", row=DRAFTS, **answer, **({"endpoint": endpoint} if named else {}))
    yield event(at + 2, "job", **job, state="done")


def two(named: bool = True) -> list[Event]:
    """Return the events of a host that switches eagle and then plain."""
    return [
        event(0, "begin", hosts=["h1"], what="rollout"),
        event(1, "host", host="h1", state="switching"),
        *switched("eagle", 2, named, **EAGLE),
        *switched("plain", 6, named, **PLAIN),
        event(9, "host", host="h1", state="switched"),
        event(9, "end", status=0, text="done"),
    ]


@pytest.mark.parametrize("named", [True, False], ids=["now", "a record of an earlier version"])
def test_no_endpoints_answer_takes_the_place_of_anothers(named: bool) -> None:
    (host,) = timeline_of(two(named)).hosts.values()
    assert {key: row.figure for key, row in host.rows.items()} == {("eagle", DRAFTS): 1.0, ("plain", DRAFTS): 4.0}
    assert host.message == f"proved: plain: {DRAFTS}: {PLAIN['seen']}"


def test_the_report_shows_both() -> None:
    timeline = timeline_of(two())
    assert [(row.endpoint, row.name, row.now) for row in row_sums(timeline)] == [
        ("eagle", DRAFTS, "1 tokens a step"),
        ("plain", DRAFTS, "4 tokens a step"),
    ]
    text = page(timeline, "r")
    for wanted in (EAGLE["seen"], PLAIN["seen"], "<td>eagle</td>", f"<td>plain: {DRAFTS}</td>"):
        assert str(wanted) in text
    alone = page(timeline_of([one for one in two() if one.get("endpoint") != "plain"]), "r")
    assert f"<td>{DRAFTS}</td>" in alone
    assert "<th>endpoint</th>" not in alone


def test_the_hardware_record_numbers_them_and_names_none() -> None:
    endpoint_values = {"gpus": [0], "port": 8000}
    both = settings(endpoints={"eagle": endpoint_values, "plain": {"gpus": [1], "port": 8001}})
    (host,) = timeline_of(two()).hosts.values()
    text = hardware_page(bundle(timeline_of(two()), [BundledHost(host, both, (), None)]))
    assert values(text)["hosts"][0]["gate"] == [
        {"row": DRAFTS, "endpoint": 1, "mark": "refused", "figure": 1.0},
        {"row": DRAFTS, "endpoint": 2, "mark": "proved", "figure": 4.0},
    ]
    assert ("eagle" in text, "plain" in text) == (False, False)
    number = 1
    assert f"| gate of endpoint {number} |  | figure |" in text
    assert f"| endpoint {number + 1} |  |" in text


def test_one_job_that_asks_several_tells_their_answers_apart_text() -> None:
    """As a replacement by several endpoints does, and a restart of dockerd."""
    progress = SwitchProgress("llm-0", "/failed")
    for name, mark in (("llm-0", "proved"), ("llm-1", "refused")):
        row = {"row": "a chat answer", "mark": mark, "seen": "x", "endpoint": name}
        shown = progress.hear(JobEvent("row", json.dumps(row)))
        assert progress.row is not None
        assert progress.row.endpoint == name
    assert shown.text == "refused: llm-1: a chat answer: x"
    assert progress.refused == {"llm-1: a chat answer": "x"}
    error = RefusedError({"llm-1: GPU error counters": "x"})
    assert error.code == CODES["GPU error counters"]
    assert error.reasons == (Reason(Cause.GPU, "llm-1: GPU error counters"),)
    assert code_of(["llm-1: a row of tomorrow"]) == OTHER


def test_the_hosts_judge_names_the_endpoint_that_it_was_told(tmp_path: Path) -> None:
    _, rows, _ = judged(tmp_path, GOOD)
    assert all("endpoint" not in row for row in rows), "a job of an earlier version says none"
    named_rows = [{**row, "endpoint": "llm-1"} for row in json.loads((tmp_path / "rows.json").read_text())]
    (tmp_path / "rows.json").write_text(json.dumps(named_rows))
    words = [sys.executable, "-I", "-S", "-B", str(tmp_path / "judge.pyz"), str(tmp_path)]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [json.loads(output_line.removeprefix("row "))["endpoint"] for output_line in lines] == ["llm-1"] * len(ROWS)
