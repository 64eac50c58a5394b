"""Regressions planted in the stand-in, found by the shipped questions: each kind, with its sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from rackwright.concerns.endpoint.quality.quality_check import AskedRelease, QualityCheck
from rackwright.concerns.endpoint.quality.quality_verdict import Baseline, quality_verdict
from rackwright.quality.chat_answer import answer_of
from rackwright.quality.command_judge import judge
from rackwright.quality.question import QualityQuestion
from rackwright.quality.question_file import SHIPPED, read_questions
from rackwright.quality.requests import request_body
from rackwright_lab.standins.engine.reply import reply_to
from tests.answer_table import answer_table

QUESTIONS = read_questions(SHIPPED)
TABLE = answer_table(QUESTIONS)
KINDS: dict[str, tuple[Mapping[str, Any], str]] = {
    "one question in ten wrong": ({"answers": {**TABLE, **dict.fromkeys([*TABLE][::10], "It is 7.")}}, "10 points"),
    "a broken chat template": ({"answers": TABLE, "runs_on": True}, "points"),
    "a chat template that loses turns": ({"answers": TABLE, "drop_turns": True}, "18 points"),
    "a context cut short": ({"answers": TABLE, "cut_context": 500}, "10 points"),
    "lost tool calls": ({"answers": TABLE, "drop_tool_calls": True}, "20 points"),
}


def right(faults: Mapping[str, Any]) -> dict[str, bool]:
    """Return which questions the stand-in answers rightly with some faults."""
    return {question.id: judge(question, answer_of(_body(question, faults))) for question in QUESTIONS}


def _body(question: QualityQuestion, faults: Mapping[str, Any]) -> str:
    reply = reply_to(request_body(question, "m", "vllm"), dict(faults))
    calls = [{"function": {"name": reply.call.name, "arguments": reply.call.arguments}}] if reply.call else []
    return json.dumps({"choices": [{"message": {"content": reply.text, "tool_calls": calls}, "finish_reason": "stop"}]})


@pytest.mark.parametrize(("faults", "lost"), KINDS.values(), ids=KINDS)
def test_a_planted_regression_is_found_text(faults: Mapping[str, Any], lost: str) -> None:
    before = right({"answers": TABLE})
    assert all(before.values())
    of = AskedRelease("llm", "abc", "http://127.0.0.1:1", "m", False, "vllm")
    check = QualityCheck(of, None, QUESTIONS, "hash", 2, 120)
    found = quality_verdict(check, Baseline(before, "release abc"), right(faults), "")
    assert not found.passed
    assert "worse by " in found.text
    assert f"{lost} (" in found.text
    assert quality_verdict(check, Baseline(before, "release abc"), before, "").passed


UNDER_GEVENT = """
from gevent import monkey
monkey.patch_all()
from rackwright.quality.chat_answer import ChatAnswer
from rackwright.quality.command_judge import judge
from rackwright.quality.question import QualityQuestion
judged = {"kind": "command", "argv": ["sleep", "60"], "timeout": 0.3}
question = QualityQuestion.model_validate({"id": "q", "messages": [{"role": "user", "content": "?"}], "judge": judged})
assert not judge(question, ChatAnswer("x"))
"""


def test_a_judge_that_hangs_is_ended_as_a_run_has_it() -> None:
    # gevent's `communicate` waits without a limit for a command that has read all its input.
    subprocess.run([sys.executable, "-c", UNDER_GEVENT], timeout=40, check=True)
