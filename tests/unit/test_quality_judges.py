"""Judges of answers: each kind says right and wrong, and no answer of a model makes one hang or fail."""

from __future__ import annotations

import json
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from rackwright.messages import RackwrightError
from rackwright.quality.chat_answer import ChatAnswer, ToolCall, answer_of
from rackwright.quality.command_judge import judge
from rackwright.quality.judges import Judge, judged_right, last_number
from rackwright.quality.kept_answers import keep, kept_from
from rackwright.quality.question import QualityQuestion

JUDGE: TypeAdapter[Any] = TypeAdapter(Judge)
SCHEMA = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}


def right(kind: str, text: str = "", *, calls: tuple[ToolCall, ...] = (), **more: Any) -> bool:
    """Return the verdict of a judge on a text."""
    return judged_right(JUDGE.validate_python({"kind": kind, **more}), ChatAnswer(text, calls))


def test_exact() -> None:
    assert right("exact", " Paris\n", answer="Paris")
    assert right("exact", "paris", answer=["Rome", "Paris"], ignore_case=True)
    assert right("exact", "o\u0308l", answer="\u00f6l")
    assert not right("exact", "paris", answer="Paris")
    assert not right("exact", "Paris.", answer="Paris")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("It is 42.", "42"),
        ("#### 1,234", "1234"),
        ("$12.50", "12.50"),
        ("17 + 25 = 42", "42"),
        ("It is -3 degrees", "-3"),
        ("−3", "-3"),
        ("pages 10-12", "12"),
        ("in 2024, 7", "7"),
        ("\\boxed{56}", "56"),
        ("٤٢", "42"),
        ("1 234 567", "567"),
        ("1\u202f234", "1234"),
        (".5", "0.5"),
        ("**18**", "18"),
    ],
)
def test_the_last_number_of_a_text(text: str, number: str) -> None:
    assert last_number(text) == Decimal(number)


def test_number() -> None:
    assert right("number", "first 7, then 42", answer=42)
    assert right("number", "3.14", answer=3.14159, within=0.01)
    assert right("number", "0.1", answer=0.1)
    assert not right("number", "43", answer=42)
    assert not right("number", "forty-two", answer=42)


def test_pattern() -> None:
    assert right("pattern", "x 2024-01-31 y", pattern=r"\b\d{4}-\d\d-\d\d\b")
    assert not right("pattern", "none", pattern=r"^\d+$")


def test_a_pattern_takes_no_longer_for_an_answer_that_was_made_to_hang_it() -> None:
    began = time.monotonic()
    assert not right("pattern", "a" * 200_000 + "!", pattern="^(a+)+$")
    assert not right("json_schema", json.dumps("a" * 200_000 + "!"), schema={"pattern": "^(a|a)*$"})
    assert time.monotonic() - began < 5


def test_json_schema() -> None:
    assert right("json_schema", '{"age": 3}', schema=SCHEMA)
    assert right("json_schema", '```json\n{"age": 3}\n```', schema=SCHEMA)
    assert not right("json_schema", '{"age": "3"}', schema=SCHEMA)
    assert not right("json_schema", 'Here it is: {"age": 3}', schema=SCHEMA)
    assert not right("json_schema", "", schema=SCHEMA)


@pytest.mark.parametrize("levels", [200, 20_000, 500_000])
def test_json_nested_past_all_use_is_wrong_and_ends_nothing(levels: int) -> None:
    assert not right("json_schema", "[" * levels + "]" * levels, schema={"type": "array", "items": {"$ref": "#"}})


def test_contains() -> None:
    assert right("contains", "The capital is PARIS, in France.", answer=["Paris", "france"])
    assert not right("contains", "Only Paris.", answer=["Paris", "France"])
    assert not right("contains", "paris", answer="Paris", ignore_case=False)
    assert not right("contains", "Paris or Rome", answer="Paris", without=["Rome"])


def test_tool_call() -> None:
    paris = ToolCall("get_weather", '{"city": "paris", "days": 2.0, "unit": "C"}')
    wanted: dict[str, Any] = {"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}
    assert right("tool_call", calls=(ToolCall("search", "{}"), paris), **wanted)
    assert not right("tool_call", "get_weather(Paris)", **wanted)
    assert not right("tool_call", calls=(ToolCall("get_weather", '{"city": "Rome", "days": 2}'),), **wanted)
    assert not right("tool_call", calls=(ToolCall("weather", paris.arguments),), **wanted)
    assert not right("tool_call", calls=(ToolCall("get_weather", '{"city": "Par'),), **wanted)
    assert not right("tool_call", calls=(ToolCall("get_weather", "[]"),), **wanted)
    assert right("tool_call", calls=(ToolCall("f", '{"age": 1}'),), name="f", schema=SCHEMA)
    assert not right("tool_call", calls=(ToolCall("f", '{"age": true}'),), name="f", schema=SCHEMA)
    assert not right("tool_call", calls=(ToolCall("f", '{"on": 1}'),), name="f", arguments={"on": True})


def test_thoughts_are_not_judged() -> None:
    assert right("exact", "<think>Rome? No.</think>\nParis", answer="Paris")
    assert right("number", "<think>7</think> 42", answer=42)
    assert not right("number", "<think>it is 42", answer=42)


def test_an_answer_that_did_not_come_is_wrong() -> None:
    wanted = JUDGE.validate_python({"kind": "pattern", "pattern": ".*"})
    assert judged_right(wanted, ChatAnswer())
    assert not judged_right(wanted, ChatAnswer(error="chat answers 500: no"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "pattern", "pattern": "("},
        {"kind": "pattern", "pattern": "(?<=a)b"},
        {"kind": "pattern", "pattern": "a{1000}{1000}{1000}"},
        {"kind": "json_schema", "schema": {"type": "thing"}},
        {"kind": "json_schema", "schema": {"$ref": "file:///etc/passwd"}},
        {"kind": "json_schema", "schema": {"$ref": "http://127.0.0.1:1/x"}},
        {"kind": "tool_call", "name": "f", "schema": {"pattern": "("}},
        {"kind": "exact", "answer": ""},
        {"kind": "exact", "answer": []},
        {"kind": "number", "answer": "42"},
        {"kind": "number", "answer": 1, "within": -1},
        {"kind": "command", "argv": []},
        {"kind": "command", "argv": "rm x"},
        {"kind": "contains", "answer": "a", "other": 1},
        {"kind": "model"},
        {},
    ],
)
def test_a_judge_that_could_never_judge_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        JUDGE.validate_python(wrong)


def test_a_schema_is_never_fetched_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA))
    with pytest.raises(ValidationError):
        JUDGE.validate_python({"kind": "json_schema", "schema": {"$ref": file.as_uri()}})


JUDGES = [
    {"kind": "exact", "answer": "Paris"},
    {"kind": "number", "answer": 42},
    {"kind": "pattern", "pattern": r"^(\w+\s?)*$"},
    {"kind": "json_schema", "schema": SCHEMA},
    {"kind": "contains", "answer": "x", "without": ["y"]},
    {"kind": "tool_call", "name": "f", "arguments": {"a": 1}, "schema": SCHEMA},
]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(JUDGES), st.text(), st.text())
@example(JUDGES[3], '{"age": NaN}', "NaN")
@example(JUDGES[3], '{"age": 1e999}', "1e999")
@example(JUDGES[3], '"\\ud800"', '{"\\ud800": "\\ud800"}')
@example(JUDGES[5], "", '{"a": 1, "b": "\\ud800"}')
@example(JUDGES[2], "\ud800", "")
@example(JUDGES[0], "\ud800", "")
@example(JUDGES[1], "9" * 100_000, "9" * 100_000)
@example(JUDGES[1], "1e999999999999 " + "9" * 100_000 + "." + "9" * 100_000, "")
def test_no_answer_makes_a_judge_fail(wanted: dict[str, Any], text: str, arguments: str) -> None:
    answer = ChatAnswer(text, (ToolCall("f", arguments),))
    assert judged_right(JUDGE.validate_python(wanted), answer) in (True, False)


def asks(argv: list[str], timeout: float = 10) -> QualityQuestion:
    """Return a question that a command judges."""
    wanted = {"kind": "command", "argv": argv, "timeout": timeout}
    return QualityQuestion.model_validate({"id": "q", "messages": [{"role": "user", "content": "?"}], "judge": wanted})


def test_a_command_reads_the_answer_and_its_status_is_the_verdict() -> None:
    reads = [sys.executable, "-c", "import sys; sys.exit(sys.stdin.read() != 'größer; $(x)')"]
    assert judge(asks(reads), ChatAnswer("größer; $(x)"))
    assert not judge(asks(reads), ChatAnswer("smaller"))
    assert not judge(asks(["true"]), ChatAnswer(error="no answer"))
    assert judge(asks(["true"]), ChatAnswer("x" * 1_000_000))


def test_a_command_gets_no_secret_of_this_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_hidden")
    names = "import os, sys; sys.exit('HF_TOKEN' in os.environ or os.getcwd() != sys.argv[1])"
    assert judge(asks([sys.executable, "-c", names, str(tmp_path)]), ChatAnswer("x"), tmp_path)


def test_a_command_that_takes_too_long_is_wrong_and_leaves_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    began = time.monotonic()
    script = f"(sleep 2; touch {mark}) & sleep 30"
    assert not judge(asks(["sh", "-c", script], timeout=0.3), ChatAnswer("x"))
    assert time.monotonic() - began < 20
    time.sleep(2.5)
    assert not mark.exists()


def test_a_command_that_cannot_start_is_an_error_and_no_verdict() -> None:
    with pytest.raises(RackwrightError) as error:
        judge(asks(["/no/such/judge"]), ChatAnswer("x"))
    assert error.value.code == "RW3719"


def body(message: dict[str, Any], **more: Any) -> str:
    return json.dumps({"choices": [{"message": message, **more}]})


def test_the_answer_of_a_body() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert answer_of(body(message, finish_reason="tool_calls")) == ChatAnswer("", (ToolCall("f", "{}"),), "tool_calls")
    assert answer_of(body({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})).content == "ab"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"choices": []}',
        '{"choices": [{}]}',
        '{"choices": [{"message": 3}]}',
        "[" * 100_000,
        '{"choices": [{"message": {"tool_calls": [1]}}]}',
    ],
)
def test_a_body_that_is_no_chat_completion_is_an_error_of_the_answer(text: str) -> None:
    assert answer_of(text).error


def test_half_a_letter_in_an_answer_can_be_kept() -> None:
    answer = answer_of('{"choices": [{"message": {"content": "a\\ud800b"}}]}')
    assert kept_from(keep("hash", "release", {"q": answer}).to_json()).answers["q"] == answer


def test_a_status_other_than_200_is_an_error_of_the_answer() -> None:
    assert answer_of("gone", 404).error
