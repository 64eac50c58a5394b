"""Requests and answers without what only TensorRT-LLM has in them."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict

from ..engine.serve import chat, completions
from ..engine.serve.generation import Generation
from ..engine.serve.protocol import ChatRequest, CompletionRequest
from ..engine.serve.state import Engine

_ONLY_TENSORRT_LLM = ("avg_decoded_tokens_per_iter", "mm_embedding_handle")


class OpenChatRequest(ChatRequest):
    """A chat request whose unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")


class OpenCompletionRequest(CompletionRequest):
    """A completion request whose unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")


class UnknownModelError(ValueError):
    """The request asks for another model."""


class Conversations:
    """How chats are answered; `parses_tools` is off where no parser of tool calls is set."""

    def __init__(self, parses_tools: bool) -> None:
        self._parses_tools = parses_tools

    def generate(self, engine: Engine, request: ChatRequest) -> Generation:
        """Work the answer out."""
        return chat.generate(engine, request)

    async def whole(self, engine: Engine, request: ChatRequest, generation: Generation) -> dict[str, Any]:
        """Return the body of an answer that is not streamed; without a parser a tool call is lost."""
        body = _plain(await chat.whole(engine, request, generation))
        for choice in body["choices"]:
            message = choice["message"]
            if message["tool_calls"] and not self._parses_tools:
                message["tool_calls"], choice["finish_reason"] = [], "stop"
            message["content"] = message["content"] or None
        return body

    stream = staticmethod(chat.stream)


class Texts:
    """How plain completions are answered."""

    generate = staticmethod(completions.generate)
    stream = staticmethod(completions.stream)

    async def whole(self, engine: Engine, request: CompletionRequest, generation: Generation) -> dict[str, Any]:
        """Return the body of an answer that is not streamed."""
        return _plain(await completions.whole(engine, request, generation))


def _plain(body: dict[str, Any]) -> dict[str, Any]:
    for choice in body["choices"]:
        for name in _ONLY_TENSORRT_LLM:
            choice.pop(name, None)
    return body
