"""Plain values of an engine's options: their types as the engine reads them, their bounds, and their choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rackwright_engines.finding import Finding, shown
from rackwright_engines.key_path import KeyPath
from rackwright_engines.nearest import nearest, one_edit
from rackwright_engines.options.commandline import number, parsed
from rackwright_engines.options.inexact import not_listed
from rackwright_engines.options.schema import Key, VersionLine

PLAIN: dict[str, Any] = {
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "mapping": dict[str, Any],
    "list[int]": list[int],
    "list[float]": list[float],
    "list[str]": list[str],
    "list": list[Any],
    "set[int]": set[int],
    "dict[str,str]": dict[str, Any],
    "dict[int,int]": dict[int, int],
    "null": None,
    "any": Any,
}
WORDS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "size": "a whole number, as 8192 or 8k",
    "json": "JSON text in quotes",
    "null": "empty (null)",
    "dict[int,int]": "a mapping of whole numbers",
}
FOLDS: dict[str, Callable[[str], str]] = {
    "upper": str.upper,
    "lower": str.lower,
    "snake": lambda text: text.lower().replace("-", "_"),
}
SIGNS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(PLAIN[kind])


def check_value(schema: VersionLine, key: Key, value: Any, path: KeyPath) -> Iterator[Finding]:
    """Yield what is wrong with a value that is not a section: its type, its choices, its bounds."""
    kind = WORDS.get(key.type, f"a {key.type}".replace("[", " of ").replace("]", ""))
    try:
        plain = _read(schema, key, value)
    except (ValidationError, ValueError):
        yield Finding(path, f"must be {kind}, not {shown(value)}", code="RW0303")
        return
    if isinstance(plain, list) and key.values:
        for index, one in enumerate(plain):
            yield from _among(key, one, (*path, index))
    else:
        yield from _among(key, plain, path)
    measured = isinstance(plain, int | float)
    wrong = [bound for bound in key.bounds if measured and not _within(plain, bound, key.bounds[bound])]
    if wrong:
        limits = " and ".join(f"{SIGNS[bound]} {number}" for bound, number in _strictest(key.bounds).items())
        yield Finding(path, f"must be {limits}, not {shown(value)}", code="RW0304")


def _among(key: Key, plain: Any, path: KeyPath) -> Iterator[Finding]:
    """Yield a finding for a value that the key does not list."""
    folded = FOLDS.get(key.fold, str)(str(plain))
    if not key.values or folded in key.values or plain == key.default:
        return
    text = f"must be one of {', '.join(key.values)}{nearest(folded, key.values)}, not {shown(plain)}"
    near = one_edit(folded, key.values)
    sibling = bool(near) and _letters(folded) == _letters(near)
    found = Finding(path, text, code="RW0304", near=near, sibling=sibling)
    yield not_listed(found) if key.more else found


def _letters(text: str) -> str:
    return "".join(char for char in text if not char.isdigit())


def _read(schema: VersionLine, key: Key, value: Any) -> Any:
    """Return a value as its type. Raises ValueError for one that does not fit, of pydantic or its own."""
    if key.type == "json":
        return _json(schema, value)
    if key.type == "size":
        return _size(value)
    if key.type == "bool" and _is_flag(schema, key) and not isinstance(value, bool):
        raise ValueError(value)
    as_word = schema.engine != "tensorrt-llm" and key.type == "str"
    if as_word and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if as_word and isinstance(value, Mapping) and schema.mappings:
        return value
    return _adapter(key.type).validate_python(value)


def _is_flag(schema: VersionLine, key: Key) -> bool:
    """Return True if an option takes no value on the command line: a text behind it would be read as the model."""
    return schema.engine != "tensorrt-llm" and schema.sections[schema.root].get(key.name) is key


def _json(schema: VersionLine, value: Any) -> Any:
    """Return JSON text, or a mapping where the file's reader makes text of it."""
    if isinstance(value, Mapping) and schema.mappings:
        return value
    found = parsed(_adapter("str").validate_python(value))
    if found is None and value != "null":
        raise ValueError(value)
    return found


def _size(value: Any) -> Any:
    """Return a whole number as `8k`, or `auto`."""
    if value == "auto":
        return value
    found = number(value)
    if found is None:
        raise ValueError(value)
    return found


def _strictest(bounds: Mapping[str, float]) -> dict[str, float]:
    """Return bounds without the one of two lower ones that says less: above 0 beside at least 1."""
    weaker = ("gt" if bounds["ge"] > bounds["gt"] else "ge") if {"gt", "ge"} <= set(bounds) else ""
    return {bound: number for bound, number in bounds.items() if bound != weaker}


def _within(value: float, bound: str, limit: float) -> bool:
    checks = {"gt": value > limit, "ge": value >= limit, "lt": value < limit, "le": value <= limit}
    return checks[bound]
