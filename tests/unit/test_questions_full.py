"""The full gate's rows: what each one refuses, what is compared with the release before, and what is never passed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.concerns.endpoint.full_gate import full_questions
from rackwright.concerns.endpoint.proof import full as fullproof
from rackwright.concerns.endpoint.proof.full import GPU_COUNTERS, compared, refuses
from rackwright.concerns.endpoint.proof.proof_row import Answer, Question, Severity, Verdict, judge_safely
from rackwright.settings.host_settings import EndpointSettings

BASE = "http://127.0.0.1:8000"


def endpoint(**keys: Any) -> EndpointSettings:
    model = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}
    return EndpointSettings.model_validate({"model": model, **keys})


DRAFT = {"repository": "nvidia/eagle", "mount": "/config/models/eagle"}


def message(**fields: Any) -> str:
    return json.dumps({"choices": [{"message": {"content": "", **fields}, **fields.pop("choice", {})}]})


def judge(question: Question, body: str, status: int = 200) -> Verdict:
    return judge_safely(question, Answer(status, body, 0.1))


def test_rows_apply_by_what_the_endpoint_can_do() -> None:
    names = {row.name for row in full_questions(BASE, "m", endpoint(harmony=False))}
    assert names == {"engine steps", "streaming", "no repeated token", "speed", GPU_COUNTERS}
    names = {row.name for row in full_questions(BASE, "m", endpoint(draft=DRAFT))}
    assert names >= {"a tool call", "harmony channels", "accepted drafts"}


VLLM_TOOLS = {"enable-auto-tool-choice": True, "tool-call-parser": "openai"}
SHELL = ["--enable-auto-tool-choice", "--tool-call-parser=openai"]
NO_PARSER = "not measurable on this vllm: it makes no tool calls without tool-call-parser"


@pytest.mark.parametrize(
    ("keys", "observed"),
    [
        ({}, "asked"),
        ({"harmony": False}, None),
        ({"harmony": False, "arguments": ["--tool_parser", "qwen3"]}, "asked"),
        ({"engine_kind": "vllm"}, NO_PARSER.replace("without ", "without enable-auto-tool-choice and ")),
        ({"engine_kind": "vllm", "engine": {"enable-auto-tool-choice": True}}, NO_PARSER),
        ({"engine_kind": "vllm", "engine": VLLM_TOOLS}, "asked"),
        ({"engine_kind": "vllm", "arguments": SHELL}, "asked"),
        ({"engine_kind": "vllm", "harmony": False}, None),
        ({"engine_kind": "vllm", "harmony": False, "engine": VLLM_TOOLS}, "asked"),
        ({"engine_kind": "sglang"}, NO_PARSER.replace("vllm", "sglang")),
        ({"engine_kind": "sglang", "engine": {"tool-call-parser": "gpt-oss"}}, "asked"),
    ],
)
def test_tools_are_asked_for_where_the_server_makes_calls_of_them(keys: dict[str, Any], observed: str | None) -> None:
    rows = [row for row in full_questions(BASE, "m", endpoint(**keys)) if row.name == "a tool call"]
    verdicts = [judge(row, message(tool_calls=call())) for row in rows]
    assert ["asked" if verdict.measured else verdict.text for verdict in verdicts] == ([observed] if observed else [])
    assert not any(
        refuses(row, None, verdict) for row, verdict in zip(rows, verdicts, strict=True) if not verdict.measured
    )


def call(arguments: str = '{"city": "Paris"}', name: str = "get_weather") -> list[dict[str, Any]]:
    return [{"function": {"name": name, "arguments": arguments}}]


@pytest.mark.parametrize(
    ("body", "passed"),
    [
        (message(tool_calls=call()), True),
        (message(content="It is sunny."), False),
        (message(tool_calls=call(name="other")), False),
        (message(tool_calls=call("{city: Paris")), False),
        (message(tool_calls=call("{}")), False),
    ],
)
def test_a_tool_call(body: str, passed: bool) -> None:
    assert judge(fullproof.calls_a_tool(BASE, "m"), body).passed is passed


@pytest.mark.parametrize(
    ("content", "passed"),
    [("Red.", True), ("", False), ("<|channel|>final<|message|>Red", False), ("We pick red.assistantfinalRed", False)],
)
def test_channels(content: str, passed: bool) -> None:
    assert judge(fullproof.channels(BASE, "m"), message(content=content)).passed is passed


@pytest.mark.parametrize(
    ("fields", "passed"),
    [
        ({"content": "The sea is wide."}, True),
        ({"content": "!" * 80}, False),
        ({"reasoning": "no " * 40}, False),
        ({}, False),
    ],
)
def test_a_loop_is_found_in_the_thoughts_too(fields: dict[str, str], passed: bool) -> None:
    assert judge(fullproof.no_loop(BASE, "m"), message(**fields)).passed is passed


def events(pieces: int, usage: bool = True, end: bool = True) -> str:
    chunks: list[dict[str, Any]] = [{"choices": [{"delta": {"content": "one "}}]}] * pieces
    chunks += [{"choices": [], "usage": {"completion_tokens": 3}}] if usage else []
    return "\n\n".join([f"data: {json.dumps(chunk)}" for chunk in chunks] + (["data: [DONE]"] if end else []))


@pytest.mark.parametrize(
    ("body", "passed", "observed"),
    [
        (events(3), True, "3 pieces"),
        (events(1), False, "several pieces"),
        (events(3, usage=False), False, "usage"),
        (events(3, end=False), False, "an end"),
    ],
)
def test_streaming(body: str, passed: bool, observed: str) -> None:
    verdict = judge(fullproof.streams(BASE, "m"), body)
    assert (verdict.passed, observed in verdict.text) == (passed, True)


@pytest.mark.parametrize(
    ("body", "figure"), [("0, 0, No\n0, 0, No", 0), ("2, 0, No\n0, 1, Yes", 4), ("[N/A], [N/A], [N/A]", None)]
)
def test_gpu_counters(body: str, figure: float | None) -> None:
    verdict = judge(fullproof.gpu_counters(), body, 0)
    assert (verdict.figure, verdict.measured) == (figure, figure is not None)


def test_one_more_gpu_error_than_before_is_refused() -> None:
    row = fullproof.gpu_counters()
    before = judge(row, "1, 0, No", 0)
    assert compared(row, before, judge(row, "1, 0, No", 0)).passed
    assert refuses(row, before, compared(row, before, judge(row, "2, 0, No", 0)))


VERDICTS = st.builds(Verdict, st.booleans(), st.just("seen"), st.none() | st.floats(0, 10), st.booleans())


@given(st.sampled_from(Severity), st.none() | VERDICTS, VERDICTS)
def test_a_row_refuses_only_what_was_measured_and_is_worse(
    severity: Severity, before: Verdict | None, now: Verdict
) -> None:
    row = Question("row", "true", lambda _: now, severity=severity)
    verdict = compared(row, before, now)
    if not now.measured or severity is Severity.WARN:
        assert not refuses(row, before, verdict)
    if severity is Severity.NO_WORSE and (before is None or not before.passed):
        assert not refuses(row, before, verdict)
    if severity is Severity.REFUSE and now.measured and not now.passed:
        assert refuses(row, before, verdict)
