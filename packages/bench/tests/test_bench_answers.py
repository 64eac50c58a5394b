"""Variants of a comparison answer the questions of the gate, beside the first one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.endpoint.quality.question_run import JudgedAnswers
from rackwright.settings.host_settings import HostSettings
from rackwright_bench.figures.figures import Measured, Request
from rackwright_bench.proven import keeping
from rackwright_bench.running import BenchPlan
from rackwright_bench.suites.loading import load_suite
from rackwright_bench.variants.comparing import Comparison, variant_check

MODEL = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}
PLAN = BenchPlan(load_suite("quick"), "quick")


def settings_of(**gate: Any) -> HostSettings:
    return HostSettings.model_validate({"model": MODEL, "gate": gate})


def test_a_variant_is_asked_the_questions_of_the_settings(tmp_path: Path) -> None:
    assert variant_check("eagle3", "llm", settings_of()) is None
    question = {"id": "a", "messages": [{"role": "user", "content": "?"}], "judge": {"kind": "exact", "answer": "b"}}
    file = tmp_path / "questions.jsonl"
    file.write_text(json.dumps(question))
    check = variant_check("eagle3", "llm", settings_of(questions=str(file)))
    assert check is not None
    assert (check.now.release, check.now.model, len(check.questions)) == ("eagle3", "gpt-oss-120b", 1)


def comparison(answers: dict[str, JudgedAnswers], record: Path = Path()) -> Comparison:
    settings = settings_of(questions="shipped")
    variants: Any = dict.fromkeys(("baseline", *(name for name in answers if name != "baseline")), settings)
    trial: Any = type("Trial", (), {"endpoint": "llm"})()
    return Comparison(PLAN, trial, variants, Path(), record, print, {}, answers)


def compared(answers: dict[str, JudgedAnswers]) -> list[str]:
    return comparison(answers).answers_compared()


def right(number: int, wrong: int = 0) -> JudgedAnswers:
    return JudgedAnswers(right={f"q{at}": at >= wrong for at in range(number)})


def test_each_variant_s_answers_are_compared_with_the_first_one_s_text() -> None:
    assert compared({}) == []
    assert compared({"eagle3": right(10)}) == []
    first, other = compared({"baseline": right(100), "eagle3": right(100, 10)})
    assert "100 of 100" in first
    assert other.startswith("eagle3 beside baseline: worse by 10 points (")


def test_a_variant_that_answers_worse_than_allowed_cannot_be_taken() -> None:
    made = comparison({"baseline": right(100), "eagle3": right(100, 40), "draft_1": right(100, 1)})
    assert list(made.worse_answers()) == ["eagle3"]
    assert comparison({}).worse_answers() == {}


def rounds(rate: float) -> dict[str, list[Measured]]:
    """Make three rounds of each cell of the suite, at so many tokens a second, and a little more in each."""
    rows = tuple(Request(50, 5, 500, number + 1, 1024) for number in range(10))
    several = [Measured(rows, 10240 / (rate + more)) for more in (0, 0.1, 0.2)]
    return {cell.name: several for cell in PLAN.cells}


def test_a_comparison_keeps_no_variant_that_answers_worse(tmp_path: Path) -> None:
    """The other variant is slower than that one, and wins beside the first."""
    lines = list[str]()
    answers = {"baseline": right(100), "eagle3": right(100, 40), "draft_1": right(100)}
    made = comparison(answers, tmp_path / "runs" / "1.jsonl")
    made.found = {"baseline": rounds(100), "eagle3": rounds(300), "draft_1": rounds(140)}
    stored = list[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keeping, "_keep", lambda _, proofs, *__: stored.extend(one.variant for one in proofs))
        keeping.keep_compared(made, "llm", tmp_path, lines.append)
    assert stored == ["draft_1"]
    assert any(text.startswith("eagle3 is not kept as a preset") for text in lines)
