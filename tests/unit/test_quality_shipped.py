"""The shipped set: a hundred questions; each judge calls its reference right, and what regressions look like wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from rackwright.quality.chat_answer import ChatAnswer, ToolCall
from rackwright.quality.judges import CallsTool, JsonSchema, Number, judged_right
from rackwright.quality.question import QualityQuestion
from rackwright.quality.question_file import SHIPPED, read_questions

QUESTIONS = read_questions(SHIPPED)


def reference(question: QualityQuestion) -> ChatAnswer:
    """Return the answer that is right; every question of the set has one."""
    assert question.reference_answer is not None, question.id
    return question.reference_answer


def spoilt(question: QualityQuestion) -> Iterator[ChatAnswer]:
    """Yield answers as regressions make them."""
    answer = reference(question)
    yield ChatAnswer()
    yield ChatAnswer("I am sorry, but I do not know that.")
    yield ChatAnswer("!!!!!!!!!!!!!!!!!!!!!!!!!!!!")
    yield ChatAnswer("<think>" + answer.content, answer.tool_calls and ())
    yield ChatAnswer(answer.content, answer.tool_calls, error="chat answers 400: too long")
    if isinstance(question.judge, Number):
        yield ChatAnswer(f"{question.judge.answer + 1:g}")
        yield ChatAnswer(f"{-question.judge.answer:g}")
    if isinstance(question.judge, JsonSchema):
        yield ChatAnswer(answer.content[:-1])
        yield ChatAnswer(f"Here you are: {answer.content}")
    if isinstance(question.judge, CallsTool):
        (call,) = answer.tool_calls
        yield ChatAnswer(f'{{"name": "{call.name}", "arguments": {call.arguments}}}')
        yield ChatAnswer("", (ToolCall(call.name, call.arguments[:-1]),))
        yield ChatAnswer("", (ToolCall(f"functions.{call.name}", call.arguments),))
        yield ChatAnswer("", (ToolCall(call.name, "{}"),))


def test_there_are_a_hundred_of_five_subjects() -> None:
    assert Counter(question.subject for question in QUESTIONS) == {
        "arithmetic": 35,
        "tools": 20,
        "languages": 20,
        "json": 15,
        "long context": 10,
    }
    assert len({json.dumps([message.model_dump() for message in one.messages]) for one in QUESTIONS}) == len(QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_each_judge_tells_its_reference_from_what_is_wrong(question: QualityQuestion) -> None:
    assert judged_right(question.judge, reference(question))
    assert not any(judged_right(question.judge, answer) for answer in spoilt(question))


def test_an_answer_to_another_question_is_rarely_right() -> None:
    right = [
        (one.id, other.id)
        for one in QUESTIONS
        for other in QUESTIONS
        if one.id != other.id and judged_right(one.judge, reference(other))
    ]
    assert len(right) < 30, "a release that mixes its answers up would pass"


def test_what_is_looked_for_in_a_long_context_is_in_it() -> None:
    for question in QUESTIONS:
        text = str(question.messages[0].content)
        if question.subject == "long context" and "Add the number" not in text:
            assert reference(question).content.removeprefix("The ") in text
            assert 3_000 < len(text) < 20_000
