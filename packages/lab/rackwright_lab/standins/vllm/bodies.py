"""Requests, answers and refusals as vLLM 0.14.1 has them, beyond what all engines share; compared with a real one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from ..common.bodies import Conversations, OpenChatRequest, OpenCompletionRequest, Texts
from ..engine.dialects import Harmony
from ..engine.serve.generation import Generation
from ..engine.serve.state import Engine

_NO_PARSER = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
_BODY = ("service_tier", "system_fingerprint", "kv_transfer_params")
_CHAT_BODY = (*_BODY, "prompt_logprobs", "prompt_token_ids")
_MESSAGE = ("refusal", "annotations", "audio", "function_call")
_TEXT_CHOICE = ("token_ids", "prompt_logprobs", "prompt_token_ids")
PERMISSIONS = {
    "allow_create_engine": False, "allow_sampling": True, "allow_logprobs": True, "allow_search_indices": False,
    "allow_view": True, "allow_fine_tuning": False, "organization": "*", "group": None, "is_blocking": False,
}  # fmt: skip


class RefusedError(ValueError):
    """A request that cannot be carried out, and the parameter that is at fault."""

    def __init__(self, text: str, param: str | None = None) -> None:
        super().__init__(text)
        self.param = param


class VllmChatRequest(OpenChatRequest):
    """A chat; without a model it goes to the one that is served."""

    model: str | None = None  # type: ignore[assignment]
    max_tokens: int | None = None


class VllmCompletionRequest(OpenCompletionRequest):
    """A text to continue; without a model it goes to the one that is served."""

    model: str | None = None  # type: ignore[assignment]
    max_tokens: int | None = None


class VllmConversations(Conversations):
    """Chats; other models than gpt-oss are not even asked for a tool call without a parser."""

    def generate(self, engine: Any, request: Any) -> Generation:
        """Work the answer out. Raises ValueError for a request that flags or limits do not allow."""
        wants = bool(request.tools) and request.tool_choice == "auto"
        if wants and not self._parses_tools and not isinstance(engine.dialect, Harmony):
            raise RefusedError(_NO_PARSER)
        _check(request)
        made = super().generate(engine, request)
        limit, longest = request.limit(), engine.longest()
        if limit is not None and limit > longest - made.prompt_tokens:
            raise RefusedError(
                f"'max_tokens' or 'max_completion_tokens' is too large: {limit}. This model's maximum context length "
                f"is {longest} tokens and your request has {made.prompt_tokens} input tokens "
                f"({limit} > {longest} - {made.prompt_tokens})."
            )
        return made

    async def whole(self, engine: Engine, request: Any, generation: Generation) -> dict[str, Any]:
        """Return the body of an answer that is not streamed."""
        body = _counted(await super().whole(engine, request, generation))
        for choice in body["choices"]:
            choice["token_ids"] = None
            choice["message"] |= dict.fromkeys(_MESSAGE)
        return body | dict.fromkeys(_CHAT_BODY)

    @staticmethod
    async def stream(engine: Engine, request: Any, generation: Generation) -> AsyncIterator[str]:
        """Yield the server-sent events of a streamed answer."""
        async for event in Conversations.stream(engine, request, generation):
            text = event.removeprefix("data: ")
            yield event if text.startswith("[DONE]") else f"data: {json.dumps(_chunk(json.loads(text)))}\n\n"


class VllmTexts(Texts):
    """How plain completions are answered."""

    @staticmethod
    def generate(engine: Engine, request: Any) -> Generation:
        """Work the answer out. Raises ValueError for a request beyond the limits."""
        _check(request)
        return Texts.generate(engine, request)

    async def whole(self, engine: Engine, request: Any, generation: Generation) -> dict[str, Any]:
        """Return the body of an answer that is not streamed."""
        body = _counted(await super().whole(engine, request, generation))
        for choice in body["choices"]:
            choice |= dict.fromkeys(_TEXT_CHOICE)
        return body | dict.fromkeys(_BODY)


def _check(request: Any) -> None:
    if request.max_tokens is not None and request.max_tokens < 1:
        raise RefusedError(f"max_tokens must be at least 1, got {request.max_tokens}.", "max_tokens")
    if request.temperature is not None and request.temperature < 0:
        raise RefusedError(f"temperature must be non-negative, got {request.temperature}.", "temperature")
    if request.temperature == 0 and request.n > 1:
        raise RefusedError(f"n must be 1 when using greedy sampling, got {request.n}.")


def _counted(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "usage": {**body["usage"], "prompt_tokens_details": None}}


def _chunk(event: dict[str, Any]) -> dict[str, Any]:
    for choice in event["choices"]:
        delta, ends = choice["delta"], choice["finish_reason"] is not None
        delta |= {"content": ""} if ends else {}
        delta.setdefault("reasoning_content", None)
        choice |= {"stop_reason": None} if ends else {}
        if "role" in delta:
            event["prompt_token_ids"] = None
        else:
            choice["token_ids"] = None
    (event.get("usage") or {}).pop("prompt_tokens_details", None)
    return event
