"""Choosing a tool and filling its arguments from the words of the question."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from .arithmetic import solve

_WORD = re.compile(r"[a-z]{4,}")
_COMMON = {
    "with",
    "from",
    "this",
    "that",
    "what",
    "return",
    "returns",
    "given",
    "value",
    "call",
    "tool",
    "function",
    "about",
    "name",
    "string",
    "number",
    "using",
    "please",
    "which",
}
_ASKS = re.compile(r"\b(use|call|invoke)\b.*\b(tool|function)s?\b", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Call:
    """A function to be called, with its arguments as JSON text."""

    name: str
    arguments: str


def choose(tools: list[dict[str, Any]], choice: Any, question: str) -> Call | None:
    """Return the call that `question` asks for, or None. `choice` is the request's tool_choice."""
    functions = [tool["function"] for tool in tools if tool.get("type", "function") == "function"]
    if not functions or choice == "none":
        return None
    if isinstance(choice, dict):
        wanted = choice.get("function", {}).get("name")
        functions = [one for one in functions if one["name"] == wanted] or functions
    best = max(functions, key=lambda one: _fit(one, question))
    forced = choice == "required" or isinstance(choice, dict) or _ASKS.search(question)
    if not forced and _fit(best, question) == 0:
        return None
    return Call(best["name"], json.dumps(_filled(best.get("parameters") or {}, question)))


def _fit(function: dict[str, Any], question: str) -> int:
    text = f"{function['name'].replace('_', ' ')} {function.get('description') or ''}".lower()
    shared = (set(_WORD.findall(text)) & set(_WORD.findall(question.lower()))) - _COMMON
    return len(shared) + 3 * (function["name"].lower() in question.lower())


def _filled(schema: dict[str, Any], question: str) -> dict[str, Any]:
    properties: dict[str, Any] = schema.get("properties", {})
    numbers = [float(found) for found in re.findall(r"-?\d+(?:\.\d+)?", question)]
    required = schema.get("required", list(properties))
    return {name: value_for(name, properties.get(name, {}), question, numbers) for name in required}


def value_for(name: str, schema: dict[str, Any], question: str, numbers: list[float]) -> Any:
    """Return a value that fits one property's schema; takes the question's numbers in their order."""
    if schema.get("enum"):
        return next((one for one in schema["enum"] if str(one).lower() in question.lower()), schema["enum"][0])
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type", "string")
    kind = next((one for one in kind if one != "null"), "string") if isinstance(kind, list) else kind
    if kind in ("integer", "number"):
        value = numbers.pop(0) if numbers else 1.0
        return int(value) if kind == "integer" or value.is_integer() else value
    if kind == "boolean":
        return True
    if kind == "array":
        return _array(name, schema.get("items", {}), question, numbers)
    if kind == "object":
        return _filled(schema, question)
    return _text(name, question)


def _array(name: str, items: dict[str, Any], question: str, numbers: list[float]) -> list[Any]:
    count = max(len(numbers), 1) if items.get("type") in ("integer", "number") else 1
    return [value_for(name, items, question, numbers) for _ in range(count)]


def _text(name: str, question: str) -> str:
    if re.search(r"city|location|place|country|town", name, re.IGNORECASE):
        found = re.search(r"\b(?:in|at|for|of|near)\s+([A-Z][\w'-]*(?:\s[A-Z][\w'-]*)*)", question)
        return found[1] if found else "Paris"
    if re.search(r"expr|formula|equation", name, re.IGNORECASE) and solve(question) is not None:
        found = re.search(r"[\d(][\d\s+\-*/().x×]*[\d)]", question)
        return found[0].strip() if found else question
    quoted = re.search(r"[\"'“](.+?)[\"'”]", question)
    return quoted[1] if quoted else question.strip()
