"""Variants of a comparison answer the questions of the gate, beside the first one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rackwright.concerns.endpoint.quality.question_run import JudgedAnswers
from rackwright.settings.host_settings import HostSettings
from rackwright_bench.variants.comparing import Comparison, variant_check

MODEL = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}


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


def compared(answers: dict[str, JudgedAnswers]) -> list[str]:
    settings = settings_of(questions="shipped")
    variants: Any = {"baseline": settings, "eagle3": settings}
    trial: Any = type("Trial", (), {"endpoint": "llm"})()
    nothing: Any = None
    return Comparison(nothing, trial, variants, Path(), Path(), print, {}, answers).answers_compared()


def right(number: int, wrong: int = 0) -> JudgedAnswers:
    return JudgedAnswers(right={f"q{at}": at >= wrong for at in range(number)})


def test_each_variant_s_answers_are_compared_with_the_first_one_s_text() -> None:
    assert compared({}) == []
    assert compared({"eagle3": right(10)}) == []
    first, other = compared({"baseline": right(100), "eagle3": right(100, 10)})
    assert "100 of 100" in first
    assert other.startswith("eagle3 beside baseline: worse by 10 points (")
