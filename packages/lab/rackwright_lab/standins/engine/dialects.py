"""From a reply to tokens and back: the harmony format of gpt-oss models, and plain text for all others."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from openai_harmony import (  # type: ignore[import-untyped]
    Author,
    Conversation,
    DeveloperContent,
    HarmonyEncoding,
    HarmonyEncodingName,
    HarmonyError,
    Message,
    ReasoningEffort,
    Role,
    StreamableParser,
    SystemContent,
    load_harmony_encoding,
)
from openai_harmony import ToolDescription as Tool

from .reply import PIECE, Reply, text_of

Part = Literal["reasoning", "content", "tool", "frame"]


class VocabularyError(Exception):
    """The harmony vocabulary is not there or is not the right one; chat fails, /health does not notice."""


@dataclass(frozen=True)
class Token:
    """One generated token: which part of the message it belongs to, and the text it adds there."""

    part: Part
    text: str
    raw: str
    """What the model wrote, harmony's marks included."""


class Dialect(Protocol):
    """How one family of models reads a conversation and writes an answer."""

    def prompt_tokens(self, request: dict[str, Any]) -> int:
        """Return how many tokens the conversation takes."""

    def tokens(self, reply: Reply) -> list[Token]:
        """Return the answer as tokens."""


def pieces(text: str) -> list[str]:
    """Cut text into token-sized pieces that join to the same text."""
    return PIECE.findall(text)


class Plain:
    """Models with an ordinary chat template."""

    def prompt_tokens(self, request: dict[str, Any]) -> int:
        """Return the pieces of all messages and tools, with a few more a message for the template."""
        messages = request["messages"]
        tools = json.dumps(request["tools"]) if request.get("tools") else ""
        return len(pieces(tools)) + sum(4 + len(pieces(text_of(one.get("content")))) for one in messages)

    def tokens(self, reply: Reply) -> list[Token]:
        """Return the text's pieces, or those of a tool call's arguments."""
        if reply.call is not None:
            return [Token("tool", piece, piece) for piece in pieces(reply.call.arguments)]
        return [Token("content", piece, piece) for piece in pieces(reply.text)]


class Harmony:
    """gpt-oss models: the real `openai_harmony` renders the prompt and parses the generated tokens."""

    def __init__(self) -> None:
        self._encoding: HarmonyEncoding | None = None

    def _loaded(self) -> HarmonyEncoding:
        if self._encoding is None:
            self._encoding = _load_encoding()
        return self._encoding

    def prompt_tokens(self, request: dict[str, Any]) -> int:
        """Return the length of the rendered conversation. Raises VocabularyError."""
        tokens = self._loaded().render_conversation_for_completion(_conversation(request), Role.ASSISTANT)
        return len(tokens)

    def tokens(self, reply: Reply) -> list[Token]:
        """Return what the parser makes of each generated token. Raises VocabularyError."""
        encoding = self._loaded()
        parser = StreamableParser(encoding, role=Role.ASSISTANT)
        made: list[Token] = []
        for token in encoding.encode(_written(reply), allowed_special="all"):
            parser.process(token)
            delta = parser.last_content_delta or ""
            part = _part(parser.current_channel, parser.current_recipient) if delta else "frame"
            made.append(Token(part, delta, encoding.decode([token])))
        return made


def _load_encoding() -> HarmonyEncoding:
    # Left unset the real library downloads the file; a stand-in on a closed network must not hang on that.
    if "TIKTOKEN_ENCODINGS_BASE" not in os.environ:
        raise VocabularyError("error downloading or loading vocab file: failed to download or load vocab file")
    try:
        return load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)
    except HarmonyError as error:
        text = str(error)
        prefix = "error downloading or loading vocab file"
        raise VocabularyError(text if prefix in text else f"{prefix}: {text}") from error


def _part(channel: str | None, recipient: str | None) -> Part:
    if recipient:
        return "tool"
    return "reasoning" if channel == "analysis" else "content"


def _written(reply: Reply) -> str:
    thought = f"<|channel|>analysis<|message|>{reply.thought}<|end|><|start|>assistant" if reply.thought else ""
    if reply.call is None:
        return f"{thought}<|channel|>final<|message|>{reply.text}<|return|>"
    to = f"<|channel|>commentary to=functions.{reply.call.name} <|constrain|>json"
    return f"{thought}{to}<|message|>{reply.call.arguments}<|call|>"


def _conversation(request: dict[str, Any]) -> Conversation:
    effort = ReasoningEffort((request.get("reasoning_effort") or "medium").capitalize())
    system = SystemContent.new().with_reasoning_effort(effort)
    texts = [text_of(one.get("content")) for one in request["messages"] if one["role"] in ("system", "developer")]
    developer = DeveloperContent.new().with_instructions("\n".join(texts))
    functions = [tool["function"] for tool in request.get("tools") or []]
    if functions:
        developer = developer.with_function_tools(
            [Tool.new(one["name"], one.get("description") or "", parameters=one.get("parameters")) for one in functions]
        )
    head = [Message.from_role_and_content(Role.SYSTEM, system)]
    if texts or functions:
        head.append(Message.from_role_and_content(Role.DEVELOPER, developer))
    turns = [_turn(one) for one in request["messages"] if one["role"] in ("user", "assistant", "tool")]
    return Conversation.from_messages(head + turns)


def _turn(message: dict[str, Any]) -> Message:
    text = text_of(message.get("content"))
    if message["role"] == "user":
        return Message.from_role_and_content(Role.USER, text)
    if message["role"] == "tool":
        author = Author.new(Role.TOOL, f"functions.{message.get('name') or 'tool'}")
        return Message.from_author_and_content(author, text).with_channel("commentary")
    calls = message.get("tool_calls") or []
    if calls:
        function = calls[0]["function"]
        turn = Message.from_role_and_content(Role.ASSISTANT, function["arguments"]).with_channel("commentary")
        return turn.with_recipient(f"functions.{function['name']}")
    return Message.from_role_and_content(Role.ASSISTANT, text).with_channel("final")
