"""Regressions as they happen, planted into the shipped set's answers: each is found, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rackwright.quality.chat_answer import ChatAnswer
from rackwright.quality.kept_answers import verdicts
from rackwright.quality.pairs import Comparison, compare
from rackwright.quality.question import QualityQuestion
from rackwright.quality.question_file import SHIPPED, read_questions

QUESTIONS = read_questions(SHIPPED)
Planted = Callable[[int, QualityQuestion, ChatAnswer], ChatAnswer]


def after(planted: Planted) -> Comparison:
    """Compare right answers to the shipped set with those of a release that has a regression."""
    right = {question.id: question.reference_answer or ChatAnswer() for question in QUESTIONS}
    changed = {question.id: planted(at, question, right[question.id]) for at, question in enumerate(QUESTIONS)}
    return compare(verdicts(QUESTIONS, right), verdicts(QUESTIONS, changed), 2)


def one_in_ten_wrong(at: int, _: QualityQuestion, answer: ChatAnswer) -> ChatAnswer:
    return ChatAnswer("I cannot say.") if at % 10 == 3 else answer


def broken_chat_template(at: int, _: QualityQuestion, answer: ChatAnswer) -> ChatAnswer:
    """Return text in the user's name for two of three questions."""
    return ChatAnswer("<|im_start|>user\n<|im_start|>user\n", finish_reason="length") if at % 3 else answer


def context_cut_short(_: int, question: QualityQuestion, answer: ChatAnswer) -> ChatAnswer:
    is_long = sum(len(str(message.content)) for message in question.messages) > 3000
    return ChatAnswer(error="chat answers 400: longer than the maximum context length") if is_long else answer


def lost_tool_calls(_: int, __: QualityQuestion, answer: ChatAnswer) -> ChatAnswer:
    calls = [f'<tool_call>{{"name": "{call.name}", "arguments": {call.arguments}}}' for call in answer.tool_calls]
    return ChatAnswer("".join(calls)) if calls else answer


def nonsense(_: int, __: QualityQuestion, ___: ChatAnswer) -> ChatAnswer:
    return ChatAnswer("!" * 200, finish_reason="length")


@pytest.mark.parametrize(
    ("planted", "text"),
    [
        (one_in_ten_wrong, "worse by 10 points (4.7 to 17.7)"),
        (broken_chat_template, "worse by 66 points (55.8 to 75.2)"),
        (context_cut_short, "worse by 10 points (4.7 to 17.7)"),
        (lost_tool_calls, "worse by 20 points (12.6 to 29.2)"),
        (nonsense, "worse by 100 points (92.7 to 100)"),
    ],
)
def test_text_of_a_regression_that_is_refused(planted: Planted, text: str) -> None:
    found = after(planted)
    assert found.worse
    assert found.sentence == text


@pytest.mark.parametrize("lost", [0, 1, 3, 6])
def test_a_few_answers_that_change_refuse_nothing(lost: int) -> None:
    found = after(lambda at, _, answer: ChatAnswer("?") if at < lost else answer)
    assert len(found.lost) == lost
    assert not found.worse


def test_other_words_for_the_same_answers_are_no_difference() -> None:
    found = after(
        lambda _, question, answer: ChatAnswer(
            f"<think>\nHm, 7? No.\n</think>\n\n  {answer.content}\n\n", answer.tool_calls
        )
    )
    assert found.lost == ()
    assert not found.differs
