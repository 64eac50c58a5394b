"""The same requests for two servers, and what is compared of their answers: status, shape and kind of refusal."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

MODEL = "tiny-chat"
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city now.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@dataclass(frozen=True)
class Request:
    """One request: a path, and a body for a POST (JSON, or text as is)."""

    path: str
    body: dict[str, Any] | str | None = None


def chat(text: str = "What is 17 + 25? Answer with the number only.", **more: Any) -> Request:
    """Make a conversation of one question, asked greedily: where a sampled answer ends is chance."""
    request_body = {"messages": [{"role": "user", "content": text}], "max_tokens": 16, "temperature": 0}
    body = {"model": MODEL, **request_body, **more}
    return Request("/v1/chat/completions", {key: value for key, value in body.items() if value is not None})


STREAM = {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": 200}
REQUESTS = {
    "models": Request("/v1/models"),
    "health": Request("/health"),
    "version": Request("/version"),
    "an unknown path": Request("/v1/nonsense"),
    "a chat": chat(),
    "a chat without the model's name": chat(model=None),
    "a chat that streams": chat("Count from one to ten in words.", **STREAM),
    "a chat that streams without usage": chat("Count from one to ten in words.", stream=True),
    "a tool call": chat("What is the weather in Paris now? Use the tool.", tools=[TOOL], max_tokens=200),
    "a text": Request("/v1/completions", {"model": MODEL, "prompt": "The sea", "max_tokens": 8}),
    "an unknown model": chat(model="nonsense"),
    "no JSON": Request("/v1/chat/completions", "{"),
    "no messages": chat(messages=None),
    # Of one token: the length of an answer is up to the model, not to its server.
    "an unknown role": chat(messages=[{"role": "nobody", "content": "?"}], max_tokens=1),
    "too many tokens asked for": chat(max_tokens=5000),
    "a prompt that is too long": chat("sea " * 3000, max_tokens=1),
    "a negative temperature": chat(temperature=-1),
    "a temperature that is not a number": chat(temperature="warm"),
    "no tokens asked for": chat(max_tokens=0),
    "an unknown field": chat(nonsense=1),
    "a tool call that streams": chat("What is the weather in Paris now? Use the tool.", tools=[TOOL], **STREAM),
    "several answers": chat(n=2, temperature=1),
    "several greedy answers": chat(n=2),
    "a stop word": chat(stop=["4"]),
    "log probabilities": chat(logprobs=True, top_logprobs=1),
}


def answers_of(base: str, request: Request) -> dict[str, Any]:
    """Status, kind of content and shape of what a server answers to a request."""
    data = (
        None if request.body is None else (request.body if isinstance(request.body, str) else json.dumps(request.body))
    )
    headers = {"Content-Type": "application/json"}
    sent = urllib.request.Request(base + request.path, data.encode() if data is not None else None, headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(sent, timeout=120) as answer:
            status, kind, text = answer.status, answer.headers.get_content_type(), answer.read().decode()
    except urllib.error.HTTPError as error:
        status, kind, text = error.code, error.headers.get_content_type(), error.read().decode()
    return {"status": status, "kind": kind, "shape": body_shape(kind, text)}


def body_shape(kind: str, text: str) -> Any:
    """Return the shape of a body: of its JSON, or of each sort of event of a stream."""
    if kind == "text/event-stream":
        lines = [row.removeprefix("data: ") for row in text.splitlines() if row.startswith("data: ")]
        shapes = [shape(json.loads(row)) for row in lines if row != "[DONE]"]
        return {"ends": lines[-1:] == ["[DONE]"], "events": sorted({json.dumps(one, sort_keys=True) for one in shapes})}
    return shape(json.loads(text)) if kind == "application/json" and text else bool(text)


def shape(value: Any, name: str = "") -> Any:
    """Return a value's structure, without what differs from one answer to the next."""
    if isinstance(value, dict):
        return {key: shape(one, key) for key, one in sorted(value.items())}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    # Words by which a client decides; all other text may differ.
    if name in ("object", "type", "role", "finish_reason", "code", "param", "owned_by") and value is not None:
        return value
    return type(value).__name__


def metrics(text: str) -> set[str]:
    """Names of the engine's metrics."""
    return set(re.findall(r"^(vllm:\w+)[{ ]", text, re.MULTILINE))


def differences(real: Any, ours: Any, where: str = "") -> list[str]:
    """Find the differences, one line for each path."""
    if isinstance(real, dict) and isinstance(ours, dict):
        return [
            difference
            for key in sorted(real.keys() | ours.keys())
            for difference in differences(
                real.get(key, "nothing"), ours.get(key, "nothing"), f"{where}.{key}".lstrip(".")
            )
        ]
    if isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours) == 1:
        return differences(real[0], ours[0], f"{where}[]")
    return [] if real == ours else [f"{where}: the real one has {real}, the stand-in {ours}"]
