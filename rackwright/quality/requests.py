"""The request by which a question is asked: greedily, whole, once. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackwright.quality.question import QualityQuestion

GREEDY: Mapping[str, Any] = {"temperature": 0, "seed": 0, "n": 1, "stream": False}
"""`seed` counts where an engine samples against the request, as vLLM did with drafts."""
OF_ENGINE: Mapping[str, Mapping[str, Any]] = {"tensorrt-llm": {"top_k": 1}}
"""What else an engine takes: with one token left to choose from, TensorRT-LLM is greedy in every version."""


def sampling(engine_kind: str) -> Mapping[str, Any]:
    """Return the part of the request that is the same for all questions."""
    return {**GREEDY, **OF_ENGINE.get(engine_kind, {})}


def request_body(question: QualityQuestion, model: str, engine_kind: str) -> dict[str, Any]:
    """Return the body of the chat request that asks a question."""
    tools = {"tools": question.tools} if question.tools else {}
    return {
        **question.request,
        "model": model,
        "messages": [message.model_dump(exclude_unset=True) for message in question.messages],
        **tools,
        "max_tokens": question.max_tokens,
        **sampling(engine_kind),
    }
