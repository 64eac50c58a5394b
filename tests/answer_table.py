"""The stand-in's answer table from a file of questions: each has the answer that its reference says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rackwright.quality.question import QualityQuestion
from rackwright_lab.standins.engine.reply import text_of


def answer_table(questions: Iterable[QualityQuestion]) -> dict[str, Any]:
    """Return the value of the fault `answers`: right answers to questions that have a reference."""
    return {_conversation(question): _answer(question) for question in questions if question.reference is not None}


def _conversation(question: QualityQuestion) -> str:
    return "\n".join(text_of(message.content) for message in question.messages)


def _answer(question: QualityQuestion) -> Any:
    reference = question.reference
    if isinstance(reference, str) or reference is None:
        return reference
    if not reference.tool_calls:
        return reference.content
    call = reference.tool_calls[0]
    return {"name": call.name, "arguments": call.arguments}
