"""POST /v1/completions: plain text in, plain text out; needs no vocabulary of harmony's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from ..reply import completion
from .generation import Generation, generation_of, head, paced, plain_tokens
from .protocol import CompletionRequest
from .state import Engine

_DEFAULT_LIMIT = 16


def prompt_text(request: CompletionRequest) -> str:
    """Return the prompt as text; of a list of prompts the first, token numbers as they are written."""
    if isinstance(request.prompt, str):
        return request.prompt
    parts = [str(part) for part in request.prompt]
    return parts[0] if isinstance(request.prompt[0], str) else " ".join(parts)


def generate(engine: Engine, request: CompletionRequest) -> Generation:
    """Work the answer out, at most 16 tokens unless the request says more."""
    text = prompt_text(request)
    tokens = plain_tokens(completion(text, engine.faults.active()))
    limit = request.max_tokens or _DEFAULT_LIMIT
    made = generation_of("cmpl", len(plain_tokens(text)), tokens, limit, request.stop, endless=request.ignore_eos)
    return replace(made, copied=made.text("content").strip() in text)


async def whole(engine: Engine, request: CompletionRequest, generation: Generation) -> dict[str, Any]:
    """Return the response body of a request that is not streamed."""
    async with engine.slots():
        await engine.pace(len(generation.tokens), generation.copied)
    rate = engine.record(generation.id, generation.prompt_tokens, len(generation.tokens), generation.copied)
    before = prompt_text(request) if request.echo else ""
    choice = {
        "text": before + generation.text("content"),
        "logprobs": None,
        "finish_reason": generation.finish,
        "stop_reason": None,
        "avg_decoded_tokens_per_iter": rate,
    }
    choices = [{"index": index, **choice} for index in range(request.n)]
    return {
        **head(generation, "text_completion", engine.model_id),
        "choices": choices,
        "usage": generation.usage(),
    }


async def stream(engine: Engine, request: CompletionRequest, generation: Generation) -> AsyncIterator[str]:
    """Yield the server-sent events of a streamed answer."""
    first = head(generation, "text_completion", engine.model_id)

    def event(text: str, finish: str | None) -> str:
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
        return f"data: {json.dumps({**first, 'choices': [choice]})}\n\n"

    async with engine.slots():
        async for group in paced(engine, generation.tokens):
            yield event("".join(token.text for token in group), None)
    yield event("", generation.finish)
    engine.record(generation.id, generation.prompt_tokens, len(generation.tokens))
    if (request.stream_options or {}).get("include_usage"):
        yield f"data: {json.dumps({**first, 'choices': [], 'usage': generation.usage()})}\n\n"
    yield "data: [DONE]\n\n"
