"""A canary that answers worse than the release before rolls back; one that answers alike is kept."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rackwright_lab.lab import Lab
from tests import texts
from tests.lab.conftest import Run, Site
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
