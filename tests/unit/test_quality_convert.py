"""Sets of others as questions: each row becomes one whose judge tells right from wrong, or is refused by its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rackwright.cli.main import main
from rackwright.messages import SettingsError
from rackwright.quality.chat_answer import ChatAnswer
from rackwright.quality.convert import converted
from rackwright.quality.judges import judged_right
from rackwright.quality.question import QualityQuestion
from rackwright.quality.question_file import parse_questions, read_questions

GSM8K = {"question": "How many?", "answer": "5 + 5 = <<5+5=10>>10\n#### 1,010"}
EVALS = {
    "input": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Capital?"}],
    "ideal": "Paris",
}
INSPECT = {"input": "Which?", "target": ["C++", "C#"], "id": 7}
SAMPLE = {
    "doc_id": 3,
    "doc": {},
    "target": "yes",
    "arguments": {"gen_args_0": {"arg_0": "Q: Is it?\nA:", "arg_1": {"until": ["\n", "Q:"], "do_sample": False}}},
    "resps": [["no"]],
}
CHAT_SAMPLE = {
    **SAMPLE,
    "target": "18",
    "arguments": {"gen_args_0": {"arg_0": json.dumps([{"role": "user", "content": "Eggs?"}]), "arg_1": {}}},
}


def question(row: Any) -> QualityQuestion:
    """Return the question that a row of another set becomes."""
    (found,) = parse_questions("\n".join(converted(json.dumps(row), "set")), "set")
    return found


@pytest.mark.parametrize(
    ("row", "right", "wrong"),
    [
        (GSM8K, "so it is 1010", "so it is 10"),
        (EVALS, "It is paris.", "Parish"),
        (INSPECT, "I take C#", "I take C"),
        (INSPECT, "c++", "CC"),
        (SAMPLE, "Yes, it is", "eyes"),
        (CHAT_SAMPLE, "18", "180"),
        ({"input": "?", "ideal": "a.b (c) [d]"}, "It is a.b (c) [d]!", "axb (c) [d]"),
        ({"input": "?", "ideal": "-3.5"}, "-3.5", "3.5"),
        ({"input": "?", "ideal": 4}, "four: 4", "5"),
    ],
)
def test_the_judge_of_a_converted_question(row: Any, right: str, wrong: str) -> None:
    found = question(row)
    assert judged_right(found.judge, ChatAnswer(right))
    assert not judged_right(found.judge, ChatAnswer(wrong))


def test_messages_and_stops_are_those_of_the_set() -> None:
    assert [message.role for message in question(EVALS).messages] == ["system", "user"]
    assert question(SAMPLE).messages[0].content == "Q: Is it?\nA:"
    assert question(SAMPLE).request == {"stop": ["\n", "Q:"]}
    assert question(CHAT_SAMPLE).messages[0].content == "Eggs?"


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "x", "completion": "y"},
        {"question": "x", "answer": "y"},
        {"question": 1, "answer": "#### 2"},
        {"input": "x", "ideal": []},
        {"input": "x", "ideal": ""},
        {"input": [1], "ideal": "x"},
        {"input": "x", "target": "A", "choices": ["a", "b"]},
        {"doc": {}, "target": "0", "arguments": {"gen_args_0": {"arg_0": "x", "arg_1": " a"}}},
        {"doc": {}, "target": "0", "arguments": {f"gen_args_{n}": {"arg_0": "x", "arg_1": {}} for n in (0, 1)}},
        {"doc": {}, "target": "0", "arguments": []},
        [],
        1,
    ],
)
def test_a_row_that_cannot_be_asked_is_refused_by_its_line(row: Any) -> None:
    with pytest.raises(SettingsError) as error:
        list(converted(f"{json.dumps(GSM8K)}\n{json.dumps(row)}\n", "set.jsonl"))
    assert error.value.code == "RW3729"
    assert "set.jsonl line 2:" in str(error.value)


@example("0E1")
@given(st.text(min_size=1).filter(lambda text: text.strip() and "####" not in text))
def test_any_text_that_is_looked_for_is_found(text: str) -> None:
    found = question({"input": "?", "ideal": text})
    assert judged_right(found.judge, ChatAnswer(f"<{text.strip()}>"))


def test_the_verb_converts_into_what_it_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other, ours = tmp_path / "other.jsonl", tmp_path / "ours.jsonl"
    other.write_text("".join(f"{json.dumps(row)}\n" for row in (GSM8K, EVALS, INSPECT, SAMPLE)))
    assert main(["questions", str(other), "--convert"]) == 0
    ours.write_text(capsys.readouterr().out)
    assert [one.id for one in read_questions(ours)] == ["q-1", "q-2", "q-3", "q-4"]
    assert main(["questions", str(ours)]) == 0
    assert "4 questions" in capsys.readouterr().out


def test_the_verb_prints_the_shipped_set_to_be_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["questions", "shipped", "--print"]) == 0
    (tmp_path / "mine.jsonl").write_text(capsys.readouterr().out)
    assert read_questions(tmp_path / "mine.jsonl") == read_questions("shipped")


def test_the_verb_refuses_what_is_no_file_of_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_text("{}")
    assert main(["questions", str(tmp_path / "x")]) != 0
    assert "RW3709" in capsys.readouterr().err
