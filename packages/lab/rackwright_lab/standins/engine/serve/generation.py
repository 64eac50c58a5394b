"""One request's generation: cut to its limit and its stop words, then shaped as a whole or as chunks."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any

from ..dialects import Token, pieces
from ..reply import Reply
from .state import Engine

_NONSENSE = (" six,", "ghter", "\ufffd", " wide", "gits", " colour", " 4,")


@dataclass(frozen=True)
class Generation:
    """The tokens of one answer and why they end."""

    id: str
    prompt_tokens: int
    tokens: list[Token]
    finish: str
    tool: str = ""
    copied: bool = False
    """Whether what is said stood in the prompt, so that looking it up there drafts it."""

    def text(self, part: str) -> str:
        """Return the text of one part: reasoning, content or tool."""
        return "".join(token.text for token in self.tokens if token.part == part)

    def usage(self) -> dict[str, Any]:
        """Return the usage block of a response."""
        made = len(self.tokens)
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": made,
            "total_tokens": self.prompt_tokens + made,
            "prompt_tokens_details": {"cached_tokens": 0},
        }


def generation_of(
    kind: str,
    prompt_tokens: int,
    tokens: list[Token],
    limit: int | None,
    stop: str | list[str] | None,
    reply: Reply | None = None,
    *,
    endless: bool = False,
) -> Generation:
    """Cut `tokens` at `limit` and at a stop word and say how the answer ends.

    endless: the end of the answer is ignored, so it is said again until the limit.
    """
    finish = "stop"
    if endless and limit is not None:
        tokens = _filled(tokens, limit + 1)
    if limit is not None and len(tokens) > limit:
        tokens, finish = tokens[:limit], "length"
    words = [stop] if isinstance(stop, str) else stop or []
    until_stop = _until_stop(tokens, words)
    if len(until_stop) < len(tokens):
        tokens, finish = until_stop, "stop"
    call = reply.call if reply is not None else None
    if call is not None and finish == "stop":
        finish = "tool_calls"
    return Generation(f"{kind}-{uuid.uuid4().hex}", prompt_tokens, tokens, finish, call.name if call else "")


def _filled(tokens: list[Token], count: int) -> list[Token]:
    """Return at least so many tokens: the content again and again."""
    content = [token for token in tokens if token.part == "content"]
    return [*tokens, *islice(cycle(content), max(0, count - len(tokens)))]


def _until_stop(tokens: list[Token], words: list[str]) -> list[Token]:
    text = ""
    for index, token in enumerate(tokens):
        if token.part != "content":
            continue
        text += token.text
        ends = [text.index(stop) for stop in words if stop and stop in text]
        if ends:
            keep = len(token.text) - (len(text) - min(ends))
            last = token.text[: max(keep, 0)]
            return [*tokens[:index], Token("content", last, last)]
    return tokens


def spoilt(made: Generation) -> Generation:
    """Return an answer with nonsense where a draft was wrong: behind its first token, with right words in between.

    A call among it is one no more; thoughts stay.
    """
    thoughts = [token for token in made.tokens if token.part not in ("content", "tool")]
    texts = [token.text for token in made.tokens if token.part in ("content", "tool")]
    words = [text if at % 4 == 0 else _NONSENSE[at % len(_NONSENSE)] for at, text in enumerate(texts)]
    return replace(made, tokens=[*thoughts, *(Token("content", text, text) for text in words)], tool="", finish="stop")


def plain_tokens(text: str) -> list[Token]:
    """Return text as content tokens."""
    return [Token("content", piece, piece) for piece in pieces(text)]


def tool_call(generation: Generation, arguments: str) -> dict[str, Any]:
    """Return a tool call as a response carries it."""
    return {
        "id": f"chatcmpl-tool-{generation.id[-32:]}",
        "type": "function",
        "function": {"name": generation.tool, "arguments": arguments},
    }


def head(generation: Generation, kind: str, model: str) -> dict[str, Any]:
    """Return the fields that every response and chunk begins with."""
    return {"id": generation.id, "object": kind, "created": int(time.time()), "model": model}


async def paced(engine: Engine, tokens: list[Token]) -> AsyncIterator[list[Token]]:
    """Yield the tokens in groups of stream_interval, at the engine's speed."""
    step = int(engine.options.get("stream_interval") or 1)
    for group in _groups(tokens, step):
        await engine.pace(len(group))
        yield group


def _groups(tokens: list[Token], step: int) -> Iterator[list[Token]]:
    for start in range(0, len(tokens), step):
        yield tokens[start : start + step]
