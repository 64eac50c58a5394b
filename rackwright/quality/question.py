"""One question of a file: what is asked, and how its answer is judged. Pure."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from rackwright.quality.chat_answer import ChatAnswer, ToolCall
from rackwright.quality.judges import CallsTool, Command, Judge, Strict, judged_right

NAMED = r"^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}$"
"""An id: a word of records and of tables."""
FIXED = frozenset({"model", "messages", "tools", "max_tokens", "stream", "stream_options", "temperature", "seed", "n"})
"""Keys of a request that are not the question's to set: a greedy answer, once, whole."""
MOST_TOKENS = 131_072


class ChatMessage(BaseModel):
    """A message of the conversation; keys of the API beside these go to the endpoint as they are."""

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None


class ReferenceCall(Strict):
    """A tool call that is right."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class Reference(Strict):
    """An answer that is right, with tool calls."""

    content: str = ""
    tool_calls: list[ReferenceCall] = Field(default_factory=list)


def _takes(request: dict[str, Any]) -> dict[str, Any]:
    if odd := sorted(FIXED & request.keys()):
        raise ValueError(f"must not set {', '.join(odd)}: every question is asked greedily, once, and not streamed")
    return request


class QualityQuestion(Strict):
    """A question with a checkable answer."""

    id: Annotated[str, Field(pattern=NAMED)]
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    judge: Judge
    tools: list[dict[str, Any]] = Field(default_factory=list)
    max_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] = 1024
    """Tokens of the answer at most, a reasoning model's thoughts included."""
    request: Annotated[dict[str, Any], AfterValidator(_takes)] = Field(default_factory=dict)
    """More keys of the request, as `response_format` or `chat_template_kwargs`."""
    subject: str = ""
    """Its part of the set, as `arithmetic`: what was lost is counted by it."""
    reference: str | Reference | None = None
    """An answer that is right: a judge that calls it wrong is a mistake in the file."""

    @model_validator(mode="after")
    def _asks_something(self) -> QualityQuestion:
        if self.messages[-1].role not in ("user", "tool"):
            raise ValueError(f"its last message is the {self.messages[-1].role}'s, so nothing is asked")
        if isinstance(self.judge, CallsTool) and self.judge.name not in self.tool_names:
            raise ValueError(f"its judge waits for the tool {self.judge.name}, which its tools lack")
        answer = self.reference_answer
        if answer is not None and not isinstance(self.judge, Command) and not judged_right(self.judge, answer):
            raise ValueError("its judge calls its own reference answer wrong")
        return self

    @property
    def tool_names(self) -> list[str]:
        """Return the names of the tools that the model may call."""
        functions = (tool.get("function") for tool in self.tools)
        return [str(function.get("name")) for function in functions if isinstance(function, dict)]

    @property
    def reference_answer(self) -> ChatAnswer | None:
        """Return the answer that is right, as an endpoint's; None for a question without one."""
        if self.reference is None or isinstance(self.reference, str):
            return None if self.reference is None else ChatAnswer(self.reference)
        calls = (ToolCall(call.name, json.dumps(call.arguments)) for call in self.reference.tool_calls)
        return ChatAnswer(self.reference.content, tuple(calls))
