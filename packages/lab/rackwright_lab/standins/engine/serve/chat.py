"""POST /v1/chat/completions: whole answers and streams."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from ..dialects import Harmony, Token
from ..reply import reply_to
from .generation import Generation, generation_of, head, paced, tool_call
from .protocol import ChatRequest
from .state import Engine


class TooLongError(ValueError):
    """The prompt leaves no room for an answer."""


def generate(engine: Engine, request: ChatRequest) -> Generation:
    """Work the answer out. Raises TooLongError, and VocabularyError where harmony's vocabulary is missing."""
    body = request.model_dump()
    prompt = engine.dialect.prompt_tokens(body)
    room = engine.longest() - prompt
    if room <= 0:
        raise TooLongError(
            f"default_max_tokens ({room}) must be greater than 0, prompt_len ({prompt}), "
            f"max_seq_len ({engine.longest()})"
        )
    reply = reply_to(body, engine.faults.active())
    limit = min(request.limit() or room, room)
    tokens, endless = engine.dialect.tokens(reply), request.ignore_eos and request.limit() is not None
    return generation_of("chatcmpl", prompt, tokens, limit, request.stop, reply, endless=endless)


async def whole(engine: Engine, request: ChatRequest, generation: Generation) -> dict[str, Any]:
    """Return the response body of a request that is not streamed."""
    async with engine.slots():
        await engine.pace(len(generation.tokens))
    decoded = engine.record(generation.id, generation.prompt_tokens, len(generation.tokens))
    # Harmony's answers never carry it: handle_non_streaming_response in serve/harmony_adapter.py.
    rate = None if isinstance(engine.dialect, Harmony) else decoded
    choices = [_choice(index, generation, rate) for index in range(request.n)]
    return {
        **head(generation, "chat.completion", engine.model_id),
        "choices": choices,
        "usage": generation.usage(),
    }


def _choice(index: int, generation: Generation, rate: float | None) -> dict[str, Any]:
    arguments, reasoning = generation.text("tool"), generation.text("reasoning")
    message: dict[str, Any] = {
        "role": "assistant",
        "content": generation.text("content"),
        "reasoning_content": reasoning or None,
        "reasoning": reasoning or None,
        "tool_calls": [tool_call(generation, arguments)] if arguments else [],
    }
    return {
        "index": index,
        "message": message,
        "logprobs": None,
        "finish_reason": generation.finish,
        "stop_reason": None,
        "mm_embedding_handle": None,
        "avg_decoded_tokens_per_iter": rate,
    }


async def stream(engine: Engine, request: ChatRequest, generation: Generation) -> AsyncIterator[str]:
    """Yield the server-sent events of a streamed answer."""
    first = head(generation, "chat.completion.chunk", engine.model_id)

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event({**first, "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": ""})
    opened = False
    async with engine.slots():
        async for group in paced(engine, generation.tokens):
            for delta in _deltas(group, generation, opened):
                opened = opened or "tool_calls" in delta
                yield chunk(delta)
    yield chunk({}, generation.finish)
    engine.record(generation.id, generation.prompt_tokens, len(generation.tokens))
    if (request.stream_options or {}).get("include_usage"):
        yield _event({**first, "choices": [], "usage": generation.usage()})
    yield "data: [DONE]\n\n"


def _deltas(group: list[Token], generation: Generation, opened: bool) -> list[dict[str, Any]]:
    def text(part: str) -> str:
        return "".join(token.text for token in group if token.part == part)

    deltas: list[dict[str, Any]] = []
    if text("reasoning"):
        deltas.append({"reasoning_content": text("reasoning"), "reasoning": text("reasoning")})
    if text("content"):
        deltas.append({"content": text("content")})
    if text("tool"):
        call = {"function": {"arguments": text("tool")}} if opened else tool_call(generation, text("tool"))
        deltas.append({"tool_calls": [{"index": 0, **call}]})
    return deltas


def _event(body: dict[str, Any]) -> str:
    return f"data: {json.dumps(body)}\n\n"
