"""An endpoint's answer to one question, as far as it is judged. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rackwright.concerns.endpoint.proof.final_answer import THOUGHTS_BEGIN, THOUGHTS_END

DEEPEST = 100
"""Levels of lists and objects in JSON that a model made. Some ten thousand would overflow the validator's stack."""


@dataclass(frozen=True)
class ToolCall:
    """A function that the model calls; its arguments are JSON, as the model wrote it."""

    name: str
    arguments: str


@dataclass(frozen=True)
class ChatAnswer:
    """The text and the tool calls of a chat completion, or why they are missing."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    error: str = ""
    """Why no answer came: a status other than 200, or a body that is not a chat completion. It is judged wrong."""

    @property
    def text(self) -> str:
        """Return the content without the thoughts that a server without a reasoning parser leaves in it."""
        if THOUGHTS_BEGIN.match(self.content) and not THOUGHTS_END.search(self.content):
            return ""
        return THOUGHTS_END.split(self.content)[-1].strip()


def answer_of(body: str, status: int = 200) -> ChatAnswer:
    """Return the answer in the body of a chat completion."""
    if status != 200:
        return ChatAnswer(error=f"chat answers {status}: {body[:200]}")
    try:
        choice = parsed(body)["choices"][0]
        message = choice["message"]
        calls = tuple(map(_tool_call, message.get("tool_calls") or ()))
    except (ValueError, LookupError, TypeError, AttributeError):
        return ChatAnswer(error=f"not a chat completion: {body[:200]}")
    return ChatAnswer(_text(message.get("content")), calls, str(choice.get("finish_reason") or ""))


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    function = call["function"]
    arguments = function["arguments"]
    return ToolCall(
        _whole(str(function["name"])), _whole(arguments if isinstance(arguments, str) else json.dumps(arguments))
    )


def _text(content: object) -> str:
    """Return the content as text; a list of parts, which the API allows, as their texts."""
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in content if isinstance(part, Mapping))
    return _whole(str(content or ""))


def _whole(text: str) -> str:
    """Return a text with `?` for halves of letters, which JSON can say and no file can hold."""
    return text.encode(errors="replace").decode()


def parsed(text: str) -> Any:
    """Return JSON that a model wrote. Raises ValueError when it is not JSON, or nested past all use."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _deeper_than(value, DEEPEST):
        raise ValueError("nested too deeply")
    return value


def _deeper_than(value: object, levels: int) -> bool:
    """Return True if lists and objects in a value are nested more than so many levels."""
    below = [value]
    for _ in range(levels + 1):
        below = [child for one in below for child in _children(one)]
        if not below:
            return False
    return True


def _children(value: object) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list) else []
