"""A file of questions: what is read, and the line of what is not."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.messages import SettingsError
from rackwright.quality import question_file
from rackwright.quality.chat_answer import ChatAnswer, ToolCall
from rackwright.quality.kept_answers import DamagedAnswersError, keep, kept_from, verdicts
from rackwright.quality.question_file import parse_questions, questions_hash, read_questions
from rackwright.quality.requests import request_body, sampling

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def row(**more: Any) -> dict[str, Any]:
    """Return a question that is right, changed."""
    asks = [{"role": "user", "content": "What is 17 + 25?"}]
    return {"id": "sum", "messages": asks, "judge": {"kind": "number", "answer": 42}, **more}


def text_of(*rows: Any) -> str:
    return "\n".join(one if isinstance(one, str) else json.dumps(one) for one in rows)


def refused_lines(*rows: Any) -> list[str]:
    """Return the lines of the refusal that name a place in the file."""
    with pytest.raises(SettingsError) as error:
        parse_questions(text_of(*rows), "q.jsonl")
    assert error.value.code == "RW3709"
    return [text.strip() for text in str(error.value).split("\n") if text.startswith("  ")]


def test_empty_lines_and_the_order_of_keys_do_not_matter() -> None:
    found = parse_questions("\n" + text_of(row(), "", row(id="b", tools=[TOOL])) + "\n\n", "q.jsonl")
    assert [question.id for question in found] == ["sum", "b"]
    assert found[1].tool_names == ["f"]


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ("{", ""),
        ("1", ""),
        ('{"id": NaN}', ""),
        (row(judge={"kind": "number", "answer": float("nan")}), ""),
        (text_of(row()).replace("42", "1e999"), "judge.answer: "),
        ("[" * 100_000, ""),
        (row(id="a b"), "id: "),
        (row(judge={"kind": "sum", "answer": 1}), "judge.kind: "),
        (row(judge={"answer": 1}), "judge.kind: "),
        (row(judge={"kind": "number", "answer": "1"}), "judge.answer: "),
        (row(judge={"kind": "number"}), "judge.answer: "),
        (row(judge={"kind": "pattern", "pattern": "("}), "judge.pattern: "),
        (row(messages=[]), "messages: "),
        (row(messages=[{"role": "boss", "content": "x"}]), "messages[0].role: "),
        (row(messages=[{"role": "assistant", "content": "x"}]), ""),
        (row(max_tokens=0), "max_tokens: "),
        (row(tool=[TOOL]), "tool: "),
        (row(request={"stream": True}), "request: "),
        (row(judge={"kind": "tool_call", "name": "g"}, tools=[TOOL]), ""),
        (row(reference="It is 41"), ""),
    ],
)
def test_a_mistake_is_refused_by_its_line_and_key(wrong: Any, key: str) -> None:
    lines = refused_lines(row(id="first"), wrong)
    assert lines[0].startswith(f"q.jsonl line 2: {key}")


def test_an_id_that_comes_twice_names_both_lines() -> None:
    assert "line 1" in refused_lines(row(), row(id="b"), row())[0]


def test_of_many_mistakes_some_are_named_and_the_rest_counted() -> None:
    assert len(refused_lines(*["{"] * 9)) == question_file.MOST_PROBLEMS + 1


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_a_file_without_questions_is_refused(text: str) -> None:
    with pytest.raises(SettingsError):
        parse_questions(text, "q.jsonl")


def test_more_questions_than_can_be_asked_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_file, "MOST", 2)
    with pytest.raises(SettingsError):
        parse_questions(text_of(*(row(id=f"q{n}") for n in range(3))), "q.jsonl")


def test_files_that_are_no_text_too_large_or_no_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question_file, "LARGEST", 1000)
    (tmp_path / "large").write_text(" " * 2000)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("large", "binary", "missing", "."):
        with pytest.raises(SettingsError) as error:
            read_questions(tmp_path / name)
        assert error.value.code == "RW3709"


@given(st.text())
def test_no_text_makes_the_reader_fail_otherwise(text: str) -> None:
    with pytest.raises(SettingsError):
        parse_questions(text, "q.jsonl")


def test_the_hash_is_of_questions_judges_and_sampling_alone() -> None:
    first = parse_questions(text_of(row(), row(id="b")), "one")
    swapped = parse_questions(text_of(row(id="b", subject="sums"), row(reference="42")), "other")
    assert questions_hash(first, {"seed": 0}) == questions_hash(swapped, {"seed": 0})
    assert questions_hash(first, {"seed": 0}) != questions_hash(first, {"seed": 1})
    for change in ({"max_tokens": 5}, {"judge": {"kind": "number", "answer": 43}}, {"tools": [TOOL]}):
        assert questions_hash(first, {}) != questions_hash(
            parse_questions(text_of(row(**change), row(id="b")), "x"), {}
        )


def test_every_request_is_greedy_and_not_streamed() -> None:
    (question,) = parse_questions(text_of(row(tools=[TOOL], request={"chat_template_kwargs": {"a": 1}})), "q")
    for engine in ("vllm", "sglang", "tensorrt-llm"):
        body = request_body(question, "m", engine)
        assert (body["temperature"], body["stream"], body["model"], body["max_tokens"]) == (0, False, "m", 1024)
        assert body["messages"] == row()["messages"]
        assert body["tools"] == [TOOL]
        assert body["chat_template_kwargs"] == {"a": 1}
        assert sampling(engine).items() <= body.items()
    assert "tools" not in request_body(parse_questions(text_of(row()), "q")[0], "m", "vllm")


def test_kept_answers_come_back_as_they_were() -> None:
    questions = parse_questions(text_of(row(), row(id="b"), row(id="c")), "q")
    answers = {
        "sum": ChatAnswer("42"),
        "b": ChatAnswer("", (ToolCall("f", "{}"),), "stop"),
        "x": ChatAnswer(error="no"),
    }
    retained = keep("hash", "release", answers)
    again = kept_from(retained.to_json())
    assert again == retained
    assert again.answers == answers
    assert again.fits("hash")
    assert not again.fits("other")
    assert abs((datetime.now(UTC) - again.taken).total_seconds()) < 600
    assert verdicts(questions, again.answers) == {"sum": True, "b": False}


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"format": 2, "questions": "", "release": "", "answers": {}}', "[" * 9999]
)
def test_kept_answers_that_are_damaged_or_newer_are_said_so(text: str) -> None:
    with pytest.raises(DamagedAnswersError):
        kept_from(text)
