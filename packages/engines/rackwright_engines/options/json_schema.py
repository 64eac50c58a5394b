"""Turns the JSON Schema that an engine ships of its own file into the data of a version line. Pure.

TensorRT-LLM's images from about 1.4.0rc0 on have it: pydantic's form, with `$defs`, `anyOf` with null, `discriminator`.
A schema comes out of an image, so nothing in it is trusted: its size, depth, names and references are bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from rackwright_engines.options.schema import Json
from rackwright_engines.version import parse_version

ROOT = "TorchLlmArgs"
"""The section of the file itself; the schema's title is a sentence."""
DEPTH = 40
"""Levels of sections, or of references from one to the next."""
MOST_KEYS = 20_000
"""Keys with their paths; TensorRT-LLM 1.4.0rc0 has about 600."""
MOST_PARTS = 100_000
"""Parts of the schema that are looked at; the same part may count more than once."""
NAME = re.compile(r"[A-Za-z0-9_.\-]{1,100}")
LONGEST_VALUE = 200
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "null"}
LISTS = {"integer": "list[int]", "number": "list[float]", "string": "list[str]"}
BOUNDS = {"exclusiveMinimum": "gt", "minimum": "ge", "exclusiveMaximum": "lt", "maximum": "le"}
NULL: Json = {"type": "null"}
RESERVED = {*SCALARS.values(), "any", "mapping", "list"}
"""Types, which no section may be called."""


class SpoiltSchemaError(ValueError):
    """A schema of an image that cannot be used; the text says why."""

    code = "RW0364"


def data_of(text: str) -> Json:
    """Return the data of a line without its version: `decoding`, `lenient`, `sections`, `unions`.

    text: the schema's file. Raises SpoiltSchemaError for anything that is not the schema of a file's keys.
    """
    schema = _parsed(text)
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict) or not schema["properties"]:
        _spoilt("it has no properties")
    definitions = schema.get("$defs", {})
    if not isinstance(definitions, dict):
        _spoilt("its $defs is not a mapping")
    reader = _Reader(definitions)
    reader.section(ROOT, schema)
    reader.sections[ROOT].get("model", {})["given"] = True
    reader.drop_tags()
    reader.check_size()
    return {
        "decoding": "discriminated",
        "lenient": reader.lenient,
        "sections": reader.sections,
        "unions": reader.unions,
    }


def version_of(text: str) -> str:
    """Return the version that a schema's `$id` names; empty where it names none."""
    found = re.search(r'"\$id":\s*"[^"]*/TensorRT-LLM/([0-9][0-9A-Za-z.+]{0,40})/', text)
    return found[1] if found and parse_version(found[1]) else ""


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError:
        _spoilt("it is nested too deeply")
    except ValueError as error:
        _spoilt(f"it is not JSON: {error}")


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def _spoilt(why: str) -> NoReturn:
    raise SpoiltSchemaError(why)


@dataclass
class _Reader:
    """Sections and unions as they are met, from the root downward."""

    definitions: Json
    sections: Json = field(default_factory=dict)
    unions: Json = field(default_factory=dict)
    lenient: list[str] = field(default_factory=list)
    path: list[str] = field(default_factory=list)
    """Sections that are being read, each inside the one before."""
    parts: int = 0

    def section(self, name: str, part: Json) -> None:
        """Read a section, once."""
        if name in self.sections:
            return
        if len(self.path) > DEPTH:
            _spoilt(f"its sections are nested more than {DEPTH} deep")
        properties = part["properties"]
        if not isinstance(properties, dict):
            _spoilt(f"the properties of {name} are not a mapping")
        keys: Json = {}
        self.sections[name] = keys
        if part.get("additionalProperties") is not False:
            self.lenient.append(name)
        self.path.append(name)
        for key, inner in properties.items():
            if not NAME.fullmatch(key):
                _spoilt(f"{key[:LONGEST_VALUE]!r} is not the name of a key")
            if not key.startswith("_"):
                keys[key] = {**self._type(name, key, inner), **_default(inner), **_required(part, key)}
        self.path.pop()

    def _type(self, section: str, key: str, part: Any) -> Json:
        members = list(self._members(f"{section}.{key}", part, 0))
        given = [one for one in members if one != NULL]
        kinds = [self._plain(one, section, key) for one in given]
        nulls = [one.pop("nullable", False) for one in kinds]
        found = _together(kinds) if kinds else dict(NULL)
        if len(given) > 1 and all("section" in one for one in given):
            found = self._untagged(section, key, [one["section"] for one in given])
        nullable = len(given) < len(members) or any(nulls)
        return {**found, "type": f"{found['type']}?"} if nullable and found["type"] != "any" else found

    def _members(self, at: str, part: Any, depth: int) -> Iterator[Json]:
        """Yield what a value may be: references are followed, sections are read and stay names."""
        self.parts += 1
        if depth > DEPTH or self.parts > MOST_PARTS:
            _spoilt(f"its references at {at} lead too far")
        if not isinstance(part, dict):
            yield {}
        elif "$ref" in part:
            yield from self._referred(at, part["$ref"], depth)
        elif "discriminator" in part:
            yield part
        elif several := next((part[name] for name in ("anyOf", "oneOf", "allOf") if name in part), None):
            yield from self._several(at, part, several, depth)
        elif isinstance(part.get("type"), list):
            for one in part["type"]:
                yield {**part, "type": one} if one != "null" else NULL
        elif isinstance(part.get("properties"), dict) and part["properties"] and at not in self.sections:
            self.section(at, part)
            yield {"section": at}
        else:
            yield part if part.get("type") != "null" else NULL

    def _several(self, at: str, part: Json, several: Any, depth: int) -> Iterator[Json]:
        if not isinstance(several, list):
            _spoilt(f"{at} has a choice that is not a list")
        if "allOf" in part and len(several) > 1:
            yield {}
            return
        for one in several:
            yield from self._members(at, one, depth + 1)

    def _referred(self, at: str, reference: Any, depth: int) -> Iterator[Json]:
        name = str(reference).removeprefix("#/$defs/")
        target = self.definitions.get(name)
        if not isinstance(target, dict) or not NAME.fullmatch(name) or name in RESERVED:
            _spoilt(f"{at} refers to {str(reference)[:LONGEST_VALUE]!r}, which is not there")
        if "properties" not in target:
            yield from self._members(at, target, depth + 1)
        elif name in self.path:
            yield {"type": "object"}
        else:
            self.section(name, target)
            yield {"section": name}

    def _plain(self, part: Json, section: str, key: str) -> Json:
        """Return the type of one member."""
        if "section" in part:
            return {"type": part["section"]}
        if "discriminator" in part:
            return self._tagged(section, key, part)
        if "enum" in part or "const" in part:
            return _choice(part["enum"] if "enum" in part else [part["const"]])
        kind = part.get("type")
        if part.get("not") == {}:
            return dict(NULL)
        if kind == "array":
            return _list(part)
        if kind == "object":
            return {"type": "dict[str,str]" if part.get("additionalProperties") == {"type": "string"} else "mapping"}
        return (
            {"type": SCALARS[kind], **_bounds(part)} if isinstance(kind, str) and kind in SCALARS else {"type": "any"}
        )

    def _tagged(self, section: str, key: str, part: Json) -> Json:
        """Read a choice by the tag that its discriminator names."""
        discriminator = part["discriminator"]
        tag = discriminator.get("propertyName") if isinstance(discriminator, dict) else None
        mapping = discriminator.get("mapping") if isinstance(discriminator, dict) else None
        if not isinstance(tag, str) or not isinstance(mapping, dict) or not all(map(NAME.fullmatch, (tag, *mapping))):
            _spoilt(f"{section}.{key} has a discriminator without names")
        kinds = {name: [*self._referred(f"{section}.{key}", reference, 0)] for name, reference in mapping.items()}
        named = {name: one["section"] for name, members in kinds.items() for one in members[:1] if "section" in one}
        return self._union(section, key, {"tag": tag, "kinds": named}) if len(named) == len(kinds) else {"type": "any"}

    def _untagged(self, section: str, key: str, names: list[str]) -> Json:
        """Read a choice of sections without a discriminator: by a tag that each of them has, else as `any`."""
        words = {tag: self._words(tag, names) for tag in self.sections[names[0]]}
        tag = next((tag for tag, kinds in words.items() if len(kinds) == len(names)), None)
        if tag is None:
            return {"type": "any"}
        mixed = f"any of {section}.{key}"
        self.sections[mixed] = _mixed([self.sections[name] for name in names])
        return self._union(section, key, {"tag": tag, "kinds": words[tag], "untagged": mixed})

    def _words(self, tag: str, names: list[str]) -> dict[str, str]:
        """Return the sections by the one value that each of them has for a tag."""
        values = {name: self.sections[name].get(tag, {}).get("values", ()) for name in names}
        return {several[0]: name for name, several in values.items() if len(several) == 1}

    def _union(self, section: str, key: str, union: Json) -> Json:
        name = f"union of {key}" if section == ROOT else f"union of {section}.{key}"
        self.unions[name] = union
        return {"type": name}

    def drop_tags(self) -> None:
        """Take the tags out of the sections: the union that is chosen by them has them."""
        for union in self.unions.values():
            for name in (*union["kinds"].values(), *filter(None, [union.get("untagged")])):
                self.sections[name].pop(union["tag"], None)

    def check_size(self) -> None:
        """Raise SpoiltSchemaError when the paths of all keys are more, or longer, than an engine has."""
        if self._paths(ROOT, {}, 0)[0] > MOST_KEYS:
            _spoilt(f"it has more than {MOST_KEYS} keys")

    def _paths(self, name: str, counted: dict[str, tuple[int, int]], level: int) -> tuple[int, int]:
        """Return how many keys a section has with all below it, and how many levels they are deep."""
        if name not in counted and level <= DEPTH:
            kinds = [str(part["type"]).removesuffix("?") for part in self.sections[name].values()]
            below = [self._paths(inner, counted, level + 1) for kind in kinds for inner in self._below(kind)]
            counted[name] = len(kinds) + sum(keys for keys, _ in below), 1 + max([deep for _, deep in below], default=0)
        if level + counted.get(name, (0, 1))[1] > DEPTH:
            _spoilt(f"its sections are nested more than {DEPTH} deep")
        return counted[name]

    def _below(self, kind: str) -> list[str]:
        union = self.unions.get(kind)
        return list(union["kinds"].values()) if union else [kind] if kind in self.sections else []


def _together(kinds: list[Json]) -> Json:
    """Return one type for several: values add up, whole numbers are numbers, and what has no common type is `any`."""
    if len(kinds) == 1 or all(one == kinds[0] for one in kinds):
        return kinds[0]
    types = {str(one["type"]) for one in kinds}
    if types == {"str"} and all("values" in one for one in kinds):
        return {"type": "str", "values": list(dict.fromkeys(value for one in kinds for value in one["values"]))}
    if len(types) == 1:
        return {"type": types.pop()}
    return {"type": "float" if types == {"int", "float"} else "any"}


def _mixed(sections: list[Json]) -> Json:
    """Merge the keys of several sections; a key on which they differ is `any`."""
    names = dict.fromkeys(name for section in sections for name in section)
    return {name: _same([section[name] for section in sections if name in section]) for name in names}


def _same(part: list[Json]) -> Json:
    """Return what several sections say of a key in common; that one of them must have it does not count."""
    plain = [{name: value for name, value in one.items() if name != "required"} for one in part]
    return plain[0] if all(one == plain[0] for one in plain) else {"type": "any"}


def _choice(values: Any) -> Json:
    """Return the type of a list of values: text or whole numbers, with or without null."""
    if not isinstance(values, list):
        _spoilt("its enum is not a list")
    given = [one for one in values if one is not None]
    null = {"nullable": True} if len(given) < len(values) else {}
    if any(isinstance(one, str) and _is_garbled(one) for one in given):
        _spoilt("a value cannot be printed")
    for kind, name in ((str, "str"), (int, "int")):
        if given and all(type(one) is kind for one in given):
            return {"type": name, "values": [str(one) for one in given], **null}
    return {"type": "any"}


def _list(part: Json) -> Json:
    """Return the type of a list: of numbers, of text, or of words that it names."""
    items = part.get("items")
    if not isinstance(items, dict):
        return {"type": "list"}
    chosen = _choice(items["enum"]) if "enum" in items else {}
    if chosen.get("type") == "str" and not chosen.pop("nullable", False):
        return {**chosen, "type": "list[str]"}
    kind = items.get("type") if not set(items) & {"enum", "anyOf", "oneOf"} else None
    if kind == "integer" and part.get("uniqueItems"):
        return {"type": "set[int]"}
    return {"type": LISTS.get(kind, "list") if isinstance(kind, str) else "list"}


def _bounds(part: Json) -> Json:
    return {bound: part[name] for name, bound in BOUNDS.items() if type(part.get(name)) in (int, float)}


def _default(part: Any) -> Json:
    default = part.get("default", ...) if isinstance(part, dict) else ...
    short = isinstance(default, str) and not _is_garbled(default)
    return {"default": default} if default is None or short or isinstance(default, bool | int | float) else {}


def _required(section: Json, key: str) -> Json:
    names = section.get("required")
    return {"required": True} if isinstance(names, list) and key in names else {}


def _is_garbled(text: str) -> bool:
    return len(text) > LONGEST_VALUE or not text.isprintable()
