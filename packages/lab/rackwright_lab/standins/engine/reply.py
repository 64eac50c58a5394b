"""What the stand-in says to a conversation: text, thoughts, or a tool call."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from . import tools
from .answers import answer

PIECE = re.compile(r"\s*\S{1,6}|\s+$")
"""A token-sized piece, as the dialects cut text."""
NEXT_TURN = "\n\nuser\nAnd how much is that for 3 of them?\n\nassistant\n"
"""Text that a model appends when it misses the end of its turn."""
BANGS = "!" * 400
_THOUGHT = (
    "The user asks something short. ",
    "I work it out in small steps, then check the result once more. ",
    "Nothing in the question needs anything else. ",
)
_ROUNDS = {"low": 1, "medium": 4, "high": 12}


@dataclass(frozen=True)
class Reply:
    """One answer. `call` is set instead of `text` when a tool is to be called."""

    text: str
    thought: str = ""
    call: tools.Call | None = None


def text_of(content: Any) -> str:
    """Return the text of a message's content: a string, a list of parts, or nothing."""
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or ""


def reply_to(request: dict[str, Any], faults: dict[str, Any]) -> Reply:
    """Return the reply to a chat request's messages and tools, spoilt as the active faults say."""
    messages: list[dict[str, Any]] = request["messages"]
    question = _cut(
        next((text_of(one.get("content")) for one in reversed(messages) if one["role"] == "user"), ""), faults
    )
    if faults.get("repeat_bang"):
        return Reply(BANGS)
    thought = "".join(_THOUGHT) * _ROUNDS.get(request.get("reasoning_effort") or "medium", 4)
    if (tabled := _tabled(_read(messages, faults), request, faults)) is not None:
        more = NEXT_TURN if faults.get("runs_on") and tabled.call is None else ""
        return replace(tabled, text=f"{tabled.text}{more}", thought=thought)
    if messages[-1]["role"] == "tool":
        return Reply(f"The tool answered: {text_of(messages[-1].get('content'))}", thought)
    if faults.get("runs_on"):
        return Reply(f"{_shaped(request.get('response_format'), question, {})}{NEXT_TURN}", thought)
    call = tools.choose(request.get("tools") or [], request.get("tool_choice"), question)
    if call is not None and not faults.get("drop_tool_calls"):
        return Reply("", thought, call)
    return Reply(_shaped(request.get("response_format"), question, faults), thought)


def _read(messages: list[dict[str, Any]], faults: dict[str, Any]) -> str:
    """Return the conversation as the model reads it: what its template keeps, and what its context holds."""
    template = messages[-1:] if faults.get("drop_turns") else messages
    return _cut("\n".join(text_of(one.get("content")) for one in template), faults)


def _cut(text: str, faults: dict[str, Any]) -> str:
    most = faults.get("cut_context")
    return text if most is None else "".join(PIECE.findall(text)[-int(most) :])


def _tabled(conversation: str, request: dict[str, Any], faults: dict[str, Any]) -> Reply | None:
    """Return the answer that the lab's table has for a conversation; a call only where the request has that tool."""
    found = (faults.get("answers") or {}).get(conversation)
    if found is None or isinstance(found, str):
        return None if found is None else Reply(found)
    offered = {tool["function"]["name"] for tool in request.get("tools") or []}
    if faults.get("drop_tool_calls") or request.get("tool_choice") == "none" or found["name"] not in offered:
        return Reply(json.dumps(found["arguments"]))
    return Reply("", call=tools.Call(found["name"], json.dumps(found["arguments"])))


def completion(prompt: str, faults: dict[str, Any]) -> str:
    """Return the text that follows a plain prompt: of a text that was in it before, its continuation."""
    if faults.get("repeat_bang"):
        return BANGS
    if isinstance(tabled := (faults.get("answers") or {}).get(prompt), str):
        return tabled
    spoilt = "answer" in faults or faults.get("wrong_answers")
    return _said(prompt, faults) if spoilt else continued(prompt) or _said(prompt, faults)


def continued(prompt: str) -> str:
    """Return the rest of an earlier paragraph that the last one begins again; empty when it begins none."""
    *before, begun = prompt.split("\n\n")
    return next((one.removeprefix(begun) for one in before if begun and one.startswith(begun)), "")


def _said(question: str, faults: dict[str, Any]) -> str:
    if "answer" in faults:
        return str(faults["answer"])
    return "I am not sure, perhaps 7." if faults.get("wrong_answers") else answer(question)


def _shaped(form: dict[str, Any] | None, question: str, faults: dict[str, Any]) -> str:
    kind = (form or {}).get("type", "text")
    if form is None or kind == "text":
        return _said(question, faults)
    schema = form.get("schema") or form.get("json_schema", {}).get("schema")
    if schema is None:
        return json.dumps({"answer": _said(question, faults)})
    return json.dumps(tools.value_for("answer", {"type": "object", **schema}, question, []))
