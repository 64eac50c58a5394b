"""The row of hangs: two signs together refuse, one alone does not; without a count of steps the token decides."""

from __future__ import annotations

import json

import pytest

from rackwright.concerns.endpoint.proof.engine_steps import engine_steps
from rackwright.concerns.endpoint.proof.full import refuses
from rackwright.concerns.endpoint.proof.proof_row import Answer, Verdict, judge_safely

BASE = "http://127.0.0.1:8000"
TOKEN = json.dumps({"choices": [{"message": {"content": "Green"}}], "usage": {"completion_tokens": 8}}) + "\n200 0.4\n"
NOTHING = "\n000 60.0\n"


def counted(when: str, steps: int) -> str:
    labels = '{engine="0",model_name="m"}'
    names = ("vllm:iteration_tokens_total_count", "vllm:generation_tokens_total")
    return "".join(f"{when} {name}{labels} {float(steps)}\n" for name in names)


def vllm(steps: int, reply: str) -> str:
    return counted("before", 100) + reply + counted("after", 100 + steps)


@pytest.mark.parametrize(
    ("engine_kind", "body", "passed", "measured", "observed"),
    [
        ("vllm", vllm(8, TOKEN), True, True, "a token in 0.4 s, and vllm:iteration_tokens_total_count grew by 8"),
        ("vllm", vllm(0, NOTHING), False, True, "no token in 60 s, and its count of steps stands still: it hangs"),
        ("vllm", vllm(9, NOTHING), False, False, "it is busy, and does not hang"),
        ("vllm", vllm(0, TOKEN), False, False, "stands still: not measurable"),
        ("vllm", TOKEN, True, True, "a token in 0.4 s; vllm shows no count of steps here"),
        ("vllm", vllm(0, "{}\n500 0.1\n"), False, True, "a short chat is answered with 500"),
        ("sglang", TOKEN + "info 200\n", True, True, "a token in 0.4 s, and its scheduler answers"),
        ("sglang", NOTHING + "info 000\n", False, True, "it hangs"),
        ("sglang", NOTHING + "info 200\n", False, False, "it is busy, and does not hang"),
        ("sglang", TOKEN + "info 404\n", True, True, "sglang shows no count of steps here"),
        ("tensorrt-llm", TOKEN, True, True, "tensorrt-llm shows no count of steps here"),
        ("tensorrt-llm", NOTHING, False, True, "no token in 60 s"),
        ("tensorrt-llm", "", False, True, "nothing came back"),
    ],
)
def test_a_hang_is_two_signs(engine_kind: str, body: str, passed: bool, measured: bool, observed: str) -> None:
    row = engine_steps(BASE, "m", engine_kind)
    verdict: Verdict = judge_safely(row, Answer(200, body, 0))
    assert (verdict.passed, verdict.measured, verdict.text.endswith(observed)) == (passed, measured, True), verdict
    assert refuses(row, None, verdict) == (measured and not passed)


def test_nothing_that_others_read_is_drained() -> None:
    assert "metrics" not in engine_steps(BASE, "m", "tensorrt-llm").script
