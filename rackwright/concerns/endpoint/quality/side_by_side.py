"""Wrong answers beside those of the release before, as a text for their owner. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from rackwright.concerns.endpoint.quality.quality_check import QualityCheck
from rackwright.messages import paragraph
from rackwright.quality.chat_answer import ChatAnswer
from rackwright.quality.question import QualityQuestion
from rackwright.settings.secret import without_secrets

MOST = 4000
"""Characters of a question or an answer that are shown: its end."""


def side_by_side(
    check: QualityCheck,
    before: Mapping[str, ChatAnswer],
    right_before: Mapping[str, bool],
    now: Mapping[str, ChatAnswer],
    right_now: Mapping[str, bool],
) -> str:
    """Return the answers that are wrong now, those that were right before first; empty without any."""
    wrong = [question for question in check.questions if right_now.get(question.id) is False]
    wrong.sort(key=lambda question: not right_before.get(question.id, False))
    parts = [
        "\n".join(_rows(question, before.get(question.id), right_before.get(question.id), now[question.id]))
        for question in wrong
    ]
    return without_secrets(paragraph("\n\n".join(parts) + "\n")) if parts else ""


def _rows(
    question: QualityQuestion, before: ChatAnswer | None, was_right: bool | None, now: ChatAnswer
) -> Iterator[str]:
    was = {None: "not asked before", True: "right before", False: "wrong before"}[was_right]
    yield f"=== {question.id}: wrong now, {was}"
    yield f"--- question\n{_end(_conversation(question))}"
    yield f"--- judged by\n{question.judge.model_dump_json(by_alias=True)}"
    yield f"--- before\n{_shown(before)}"
    yield f"--- now\n{_shown(now)}"


def _conversation(question: QualityQuestion) -> str:
    texts = [
        message.content if isinstance(message.content, str) else json.dumps(message.content or "")
        for message in question.messages
    ]
    if len(texts) == 1:
        return texts[0]
    return "\n".join(f"{message.role}: {text}" for message, text in zip(question.messages, texts, strict=True))


def _shown(answer: ChatAnswer | None) -> str:
    if answer is None:
        return "(none)"
    calls = [f"{call.name}({call.arguments})" for call in answer.tool_calls]
    ends = [f"({answer.finish_reason})"] if answer.finish_reason not in ("", "stop", "tool_calls") else []
    return _end("\n".join(filter(None, [answer.error, answer.content, *calls, *ends]))) or "(empty)"


def _end(text: str) -> str:
    return text if len(text) <= MOST else f"... {text[-MOST:]}"
