"""What becomes of a gpt-oss or other answer: without its parsers SGLang hands out what the model wrote.

Sources are those of 0.5.8: `_build_chat_response` (serving_chat.py:850), the stream beside it (:664 and :695) and
`_process_messages` (:319), which has gpt-oss keep its special tokens.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..common.bodies import Conversations
from ..engine.dialects import Token
from ..engine.serve.generation import Generation, plain_tokens
from ..engine.serve.protocol import ChatRequest
from ..engine.serve.state import Engine

_ENDS = ("<|return|>", "<|call|>")
"""What ends an answer of gpt-oss; such a token is cut off (`no_stop_trim` is off: openai/protocol.py:522)."""


class SglangConversations(Conversations):
    """Chats as the two parsers, each of them set or not, leave them."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(bool(options["tool_call_parser"]))
        self._parses_reasoning = bool(options["reasoning_parser"])

    def generate(self, engine: Engine, request: ChatRequest) -> Generation:
        """Work the answer out."""
        made = super().generate(engine, request)
        takes_calls = self._parses_tools and bool(request.tools) and request.tool_choice != "none"
        if made.tool and not takes_calls:
            made = replace(made, tokens=_call_as_text(made), tool="", finish=made.finish.replace("tool_calls", "stop"))
        elif made.tool and not self._parses_reasoning:
            # GptOssDetector.detect_and_parse: "Ignore reasoning events in function call context".
            made = replace(made, tokens=[token for token in made.tokens if token.part != "reasoning"])
        return made if self._parses_reasoning or made.tool else replace(made, tokens=_as_text(made.tokens))

    async def whole(self, engine: Engine, request: ChatRequest, generation: Generation) -> dict[str, Any]:
        """Return the body of an answer that is not streamed."""
        body = await super().whole(engine, request, generation)
        for choice in body["choices"]:
            choice["message"]["tool_calls"] = choice["message"]["tool_calls"] or None
        return body


def _as_text(tokens: list[Token]) -> list[Token]:
    """Return everything as content, marks included."""
    return [Token("content", token.raw, token.raw) for token in tokens if token.raw not in _ENDS]


def _call_as_text(made: Generation) -> list[Token]:
    """Return a call as content: harmony's with the marks around it, others' as the model's JSON."""
    first = next((at for at, token in enumerate(made.tokens) if token.part == "tool"), len(made.tokens))
    thoughts = max((at + 1 for at, token in enumerate(made.tokens[:first]) if token.part == "reasoning"), default=0)
    if any(token.part == "frame" for token in made.tokens):
        return [*made.tokens[:thoughts], *_as_text(made.tokens[thoughts:])]
    return plain_tokens(f'{{"name": "{made.tool}", "parameters": {made.text("tool")}}}')
