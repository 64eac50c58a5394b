"""Checks an engine's options against the data of its version: unknown keys, types, values, bounds, and rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rackwright.engines.finding import Finding, Level
from rackwright.engines.moves import renamed, right_place
from rackwright.engines.rules import rules, switches
from rackwright.engines.schema import Key, Line, Union, line_for
from rackwright.engines.version import bare
from rackwright.settings.origin import KeyPath, dotted
from rackwright.settings.problems import nearest

PRODUCTS = {"tensorrt-llm": "TensorRT-LLM", "vllm": "vLLM", "sglang": "SGLang"}
EXTRA = "Extra inputs are not permitted"
PLAIN: dict[str, Any] = {
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "mapping": dict[str, Any],
    "list[int]": list[int],
    "list[float]": list[float],
    "set[int]": set[int],
    "dict[str,str]": dict[str, Any],
    "dict[int,int]": dict[int, int],
    "any": Any,
}
WORDS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "json": "JSON text in quotes",
    "dict[int,int]": "a mapping of whole numbers",
}
SIGNS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}


def check_options(engine_kind: str, version: str, options: Mapping[str, Any]) -> list[Finding]:
    """What is wrong with the options of one engine for one version.

    engine_kind: `tensorrt-llm`, `vllm` or `sglang`. version: as the image's tag names it; when no line was written
    for it, the nearest one counts and a warning says so. options: the engine's own YAML.
    Returns findings with paths below the options; an empty list when nothing is to be said.
    """
    line, known = line_for(engine_kind, bare(version))
    found = [] if known else [_unknown_version(engine_kind, version, line)]
    found += _mapping(line, line.root, options, (), _Place(version, options))
    more = {"tensorrt-llm": rules, "vllm": switches}.get(engine_kind)
    return found + (more(line, options) if more else [])


class _Place:
    """What messages need to know of the whole: the version as the user wrote it, and all options."""

    def __init__(self, version: str, options: Mapping[str, Any]) -> None:
        self.version = version
        self.options = options


def _unknown_version(engine: str, version: str, line: Line) -> Finding:
    name = line.versions[-1] if line.versions else line.name
    text = f"the options of {PRODUCTS[engine]} {version} are not known here, so they were checked as {name}'s"
    return Finding((), text, Level.WARN)


def _mapping(line: Line, section: str, options: Mapping[str, Any], at: KeyPath, place: _Place) -> Iterator[Finding]:
    keys = line.sections[section]
    tags = {union.tag for union in line.unions.values() if section in union.kinds.values()}
    for name, value in options.items():
        path = (*at, str(name))
        if name in keys:
            yield from _value(line, keys[name], value, path, place)
        elif name in _ignored(line, section):
            yield from _dropped(line, value, path, place)
        elif name not in tags and not line.open:
            yield _unknown_key(line, section, value, path, place)
        elif name not in tags:
            yield Finding(path, f"not checked: no data on this key of {_product(line, place)}", Level.NOTE)


def _ignored(line: Line, section: str) -> set[str]:
    """Keys that do nothing; those of a base section count for every kind of drafting."""
    shared = line.ignored.get("DecodingBaseConfig", frozenset()) if section.endswith("DecodingConfig") else frozenset()
    return set(line.ignored.get(section, frozenset())) | set(shared)


def _product(line: Line, place: _Place) -> str:
    return f"{PRODUCTS[line.engine]} {place.version}"


def _dropped(line: Line, value: Any, path: KeyPath, place: _Place) -> Iterator[Finding]:
    if path == ("sampler_type",) and value not in ("auto", "TorchSampler"):
        text = f"{_product(line, place)} has no {value} any more; TorchSampler is the only sampler: leave the key out"
        yield Finding(path, text, link="https://github.com/NVIDIA/TensorRT-LLM/pull/18232")
    else:
        yield Finding(path, f"{_product(line, place)} takes this key and ignores it: leave it out", Level.WARN)


def _unknown_key(line: Line, section: str, value: Any, path: KeyPath, place: _Place) -> Finding:
    text = f"{_product(line, place)} does not know this key"
    words = f"{dotted(path)}: {EXTRA}"
    if line.decoding == "attributes" and section == "EagleDecodingConfig":
        words = f'ValueError: "{section}" object has no field "{path[-1]}"'
    hint = right_place(line, path, value, place.options)
    if hint:
        return Finding(path, f"{text}{hint.text}", right=hint.right, link=hint.link, words=words)
    return Finding(path, f"{text}{nearest(str(path[-1]), line.sections[section])}", words=words)


def _value(line: Line, key: Key, value: Any, path: KeyPath, place: _Place) -> Iterator[Finding]:
    if value is None:
        if not key.nullable or (key.type in line.unions and line.decoding != "discriminated"):
            yield Finding(path, "must not be empty (null): write a value or leave the key out")
    elif key.type in line.unions:
        yield from _union(line, line.unions[key.type], value, path, place)
    elif key.type in line.sections:
        yield from _section(line, key.type, value, path, place)
    else:
        yield from _plain(key, value, path)
    if key.given:
        yield Finding(path, "is given on the command line already: leave it out", Level.WARN)
    elif key.unsure:
        yield Finding(path, f"not sure that {_product(line, place)} has this key; the image decides", Level.NOTE)


def _section(line: Line, section: str, value: Any, path: KeyPath, place: _Place) -> Iterator[Finding]:
    if isinstance(value, Mapping):
        yield from _mapping(line, section, value, path, place)
    else:
        yield Finding(path, f"must be a mapping of `key: value` lines, not {value!r}")


def _union(line: Line, union: Union, value: Any, path: KeyPath, place: _Place) -> Iterator[Finding]:
    if not isinstance(value, Mapping):
        yield Finding(path, f"must be a mapping with {union.tag}, not {value!r}")
        return
    tag = value.get(union.tag)
    if not isinstance(tag, str) or tag not in union.kinds:
        found = _unknown_tag(line, union, value, (*path, union.tag), place)
        yield found
        meant = union.kinds.get(str(found.right.value)) if found.right else None
        yield from _mapping(line, meant, value, path, place) if meant else ()
        return
    if tag in union.unsure:
        yield Finding((*path, union.tag), f"not sure that {_product(line, place)} has {tag}", Level.NOTE)
    yield from _mapping(line, union.kinds[tag], value, path, place)


def _unknown_tag(line: Line, union: Union, value: Mapping[str, Any], path: KeyPath, place: _Place) -> Finding:
    tag = value.get(union.tag)
    known = [kind for kind in union.kinds if kind not in union.unsure]
    words = f"ValueError: Invalid decoding type: {tag}"
    if line.decoding == "discriminated":
        tags = ", ".join(f"'{kind}'" for kind in known)
        words = (
            f"{path[0]}: Input tag '{tag}' found using '{union.tag}' does not match any of the expected tags: {tags}"
        )
    if tag is None:
        return Finding(path, f"is missing; one of {', '.join(known)}", words=words)
    hint = renamed(line, path, tag)
    text = f"{_product(line, place)} does not know {tag}"
    if hint:
        return Finding(path, f"{text}{hint.text}", right=hint.right, link=hint.link, words=words)
    return Finding(path, f"{text}{nearest(str(tag), known)}; it knows {', '.join(known)}", words=words)


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(PLAIN[kind])


def _plain(key: Key, value: Any, path: KeyPath) -> Iterator[Finding]:
    kind = WORDS.get(key.type, f"a {key.type}".replace("[", " of ").replace("]", ""))
    try:
        plain = _json(value) if key.type == "json" else _adapter(key.type).validate_python(value)
    except (ValidationError, ValueError):
        yield Finding(path, f"must be {kind}, not {value!r}")
        return
    if key.values and str(plain) not in key.values:
        yield Finding(path, f"must be one of {', '.join(key.values)}{nearest(str(plain), key.values)}, not {value!r}")
    wrong = [bound for bound in key.bounds if not _within(plain, bound, key.bounds[bound])]
    if wrong:
        limits = " and ".join(f"{SIGNS[bound]} {number}" for bound, number in key.bounds.items())
        yield Finding(path, f"must be {limits}, not {value!r}")


def _json(value: Any) -> Any:
    """Raises ValueError for anything but JSON text: vLLM makes a word of its command line of it."""
    return json.loads(_adapter("str").validate_python(value))


def _within(value: float, bound: str, limit: float) -> bool:
    checks = {"gt": value > limit, "ge": value >= limit, "lt": value < limit, "le": value <= limit}
    return checks[bound]
