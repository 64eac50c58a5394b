"""A canary that answers worse than the release before rolls back; one that answers alike is kept."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rackwright.quality.question_file import SHIPPED, read_questions
from rackwright_lab.lab import Lab
from tests import texts
from tests.answer_table import answer_table
from tests.lab.conftest import Run, Site
from tests.lab.products import in_proof
from tests.lab.scene import Scene, interval, serving
from tests.refused import refusal, row_of

pytestmark = pytest.mark.lab

ROW = "quality of answers"


@pytest.fixture
def scene(site: Site, worker_lab: Lab, request: pytest.FixtureRequest) -> Scene:
    """Return the lived-in host, which serves."""
    return serving(site, worker_lab.host("lived2"), request)


def sums(folder: Path, number: int) -> Path:
    """Write a file of additions, which the stand-in answers rightly."""
    rows = [
        {
            "id": f"sum-{at}",
            "messages": [
                {"role": "user", "content": f"What is {11 + at} + {23 + 2 * at}? Answer with the number only."}
            ],
            "judge": {"kind": "number", "answer": 34 + 3 * at},
        }
        for at in range(number)
    ]
    file = folder / "questions.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


def wrong(file: Path, every: int) -> dict[str, str]:
    """Return an answer table of the stand-in in which each so-manieth question has a wrong answer."""
    rows = [json.loads(row) for row in file.read_text().splitlines()]
    return {row["messages"][0]["content"]: "It is 7." for row in rows[::every]}


def deploy(scene: Scene, file: Path, number: int, **more: Any) -> Run:
    gate = {"level": "full", "questions": str(file), **more}
    return scene.deploy(engine=interval(number), gate=gate)


def test_a_release_that_answers_worse_is_rolled_back_and_one_that_answers_alike_is_kept(
    scene: Scene, tmp_path: Path
) -> None:
    assert scene.deploy(engine=interval(81)).status == 0
    good, file = scene.proven(), sums(tmp_path, 40)
    table = {"fault": "answers", "value": wrong(file, 5), "when": {"option.stream_interval": 82}}
    with scene.faults(table):
        run = deploy(scene, file, 82)
    assert texts.ROLLED_BACK.format(endpoint="llm") in run.output
    row = row_of(run.output, "refused", ROW, "32 of 40 right", "before: 40 of 40", f"release {good}")
    assert "worse by 20 points" in row
    refusal(run.output, "RW0418", ROW)
    assert scene.proven() == scene.runs() == good
    beside = Path(re.findall(r"\S+-answers\.txt", run.output)[-1])
    assert beside.stat().st_mode & 0o777 == 0o600
    assert "sum-35" in beside.read_text()
    again = deploy(scene, file, 82)
    assert again.status == 0, again.output
    assert "answers of" in row_of(again.output, "proved", ROW, "40 of 40 right", f"release {good}")
    assert scene.proven() == scene.runs() != good


RIGHT = answer_table(read_questions(SHIPPED))
AS_TEXT = {asks: json.dumps(answer) if isinstance(answer, dict) else answer for asks, answer in RIGHT.items()}
KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "a tenth": ({"fault": "answers", "value": {**RIGHT, **dict.fromkeys([*RIGHT][::10], "It is 7.")}}, "10 points"),
    "turns": ({"fault": "drop_turns"}, "18 points"),
    "context": ({"fault": "cut_context", "value": 500}, "10 points"),
    "tool calls": ({"fault": "answers", "value": AS_TEXT}, "20 points"),
}


@in_proof("a switch and a way back for each kind; tests/programs/test_quality_kinds.py asks the stand-in the same")
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_regression_rolls_back(scene: Scene, kind: str) -> None:
    fault, lost = KINDS[kind]
    always, number = {"fault": "answers", "value": RIGHT}, 83
    with scene.faults(always, {**fault, "when": {"option.stream_interval": number}}):
        assert deploy(scene, Path(SHIPPED), 84).status == 0
        good = scene.proven()
        run = deploy(scene, Path(SHIPPED), number)
    assert f"worse by {lost}" in row_of(run.output, "refused", ROW)
    refusal(run.output, "RW0418", ROW)
    assert scene.proven() == scene.runs() == good


@in_proof("a switch more; tests/unit/test_quality_gate.py has the verdict")
def test_an_engine_that_dies_under_the_questions_rolls_back(scene: Scene, tmp_path: Path) -> None:
    assert scene.deploy(engine=interval(85)).status == 0
    good, file = scene.proven(), sums(tmp_path, 40)
    # The basic proof and the full gate ask some twenty.
    with scene.faults({"fault": "die_after_requests", "value": 45, "when": {"option.stream_interval": 86}}):
        run = deploy(scene, file, 86)
    # Where it dies within one command, the rest of that command counts as wrong; otherwise as not asked.
    row_of(run.output, "refused", ROW)
    assert scene.proven() == scene.runs() == good
