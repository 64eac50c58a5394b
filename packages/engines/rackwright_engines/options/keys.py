"""Walks an engine's options key by key: unknown keys, other names, sections, and values."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rackwright_engines.data import PRODUCTS
from rackwright_engines.finding import Finding, Level, shown
from rackwright_engines.key_path import KeyPath, dotted
from rackwright_engines.move import Move
from rackwright_engines.nearest import nearest, one_edit
from rackwright_engines.options.commandline import Spelling, number, parsed, spelled, words
from rackwright_engines.options.inexact import softened
from rackwright_engines.options.renames import renamed, right_place
from rackwright_engines.options.schema import Key, Union, VersionLine
from rackwright_engines.options.values import check_value

GIVEN = "is given on the command line already: leave it out"
"""Of a file whose server Rackwright starts."""
OF_THE_ENDPOINT = frozenset({"host", "port", "served-model-name"})
"""Words of vLLM's and SGLang's command lines that an endpoint gives: the same key in the file has no effect."""
EXTRA = "Extra inputs are not permitted"


@dataclass(frozen=True)
class OptionSet:
    """The context of a message: the version as the user wrote it, and all options."""

    version: str
    options: Mapping[str, Any]


def check_section(
    schema: VersionLine, section: str, options: Mapping[str, Any], at: KeyPath, option_set: OptionSet
) -> Iterator[Finding]:
    """Yield what is wrong with the keys of one section, and with everything below them. at: its path."""
    if schema.engine != "tensorrt-llm" and section == schema.root:
        yield from _words(schema, options, option_set)
        return
    keys = schema.sections[section]
    tags = schema.tags(section)
    for name in [key.name for key in keys.values() if key.required and not key.given and key.name not in options]:
        yield Finding((*at, name), "is missing, and the engine wants it", code="RW0303")
    for name, value in options.items():
        path = (*at, str(name))
        if name in keys:
            yield from _value(schema, keys[name], value, path, option_set)
        elif name in _ignored(schema, section) or section in schema.lenient:
            yield from _dropped(schema, value, path, option_set)
        elif name not in tags and not schema.open:
            yield _unknown_key(schema, section, value, path, option_set)
        elif name not in tags:
            yield Finding(
                path, f"not checked: no data on this key of {_product(schema, option_set)}", Level.NOTE, code="RW0314"
            )


def _words(schema: VersionLine, options: Mapping[str, Any], option_set: OptionSet) -> Iterator[Finding]:
    """Yield the keys that become words of a command line."""
    before: dict[tuple[str, tuple[str, ...]], str] = {}
    for name, value in options.items():
        path, meant = (str(name),), spelled(schema, str(name))
        if meant is None:
            yield _unknown_key(schema, schema.root, value, path, option_set)
            continue
        first = before.setdefault((meant.key.name, meant.below), str(name))
        if first != name:
            yield Finding(path, f"and {first} are the same option under two names: keep one", Level.WARN, code="RW0306")
        if not meant.works:
            text = f"is not a name that {_product(schema, option_set)} takes from its file, only what it means is clear"
            yield Finding(
                path, text, Level.WARN, Move((".".join((meant.key.name, *meant.below)),), value), code="RW0315"
            )
        yield from _word(schema, meant, value, path, option_set)


def check_json_words(schema: VersionLine, arguments: Sequence[str], options: OptionSet) -> Iterator[Finding]:
    """Judge JSON in the words of a command line, whole or key by key as `--compilation-config.level 3`.

    Other words are the engine's alone: an option that no data know is written there.
    """
    for index, name, value in words(arguments):
        meant = spelled(schema, name.removesuffix("+"))
        if meant and (meant.below or meant.key.type in schema.sections or meant.key.type == "json"):
            of_word = replace(meant, key=replace(meant.key, unfit=False))
            yield from _word(schema, of_word, _of_word(meant, name, value), (index,), options)


def _of_word(meant: Spelling, name: str, value: Any) -> Any:
    """Return the value as vLLM's parser reads it: below a dot JSON or else text, with a plus a list."""
    if not meant.below or not isinstance(value, str):
        return value
    if name.endswith("+"):
        return value.split(",")
    found = parsed(value)
    return value if found is None else found


def _word(schema: VersionLine, meant: Spelling, value: Any, path: KeyPath, option_set: OptionSet) -> Iterator[Finding]:
    if meant.below:
        yield from _dotted(schema, meant, value, path, option_set)
    elif meant.key.unfit and schema.picky:
        text = f"{_product(schema, option_set)} refuses this key in its file: give it as a word of `arguments:`"
        yield Finding(path, text, Level.WARN, code="RW0315")
    elif meant.key.type in schema.sections and value is not None:
        yield from _json_section(schema, meant.key, value, path, option_set)
    else:
        yield from _value(schema, meant.key, value, path, option_set)


def _dotted(
    schema: VersionLine, meant: Spelling, value: Any, path: KeyPath, option_set: OptionSet
) -> Iterator[Finding]:
    """Check an option's key below, as `compilation-config.pass_config.enable_noop`: one key to the user."""
    nested = value
    for name in reversed(meant.below):
        nested = {name: nested}
    if meant.key.type in schema.sections:
        whole = (meant.key.name, *meant.below)
        for one in check_section(schema, meant.key.type, nested, whole[:1], option_set):
            right = one.right and replace(one.right, path=one.right.path and (".".join(map(str, one.right.path)),))
            yield replace(one, path=(*path, *one.path[len(whole) :]), right=right)


def _json_section(schema: VersionLine, key: Key, value: Any, path: KeyPath, option_set: OptionSet) -> Iterator[Finding]:
    """Check an option whose value is a mapping as JSON text; of `-O` a number is a level."""
    section = parsed(value)
    if isinstance(value, Mapping) and not schema.mappings:
        yield Finding(path, f"must be JSON text in quotes, not {shown(value)}", code="RW0303")
    elif isinstance(section, Mapping):
        for one in check_section(schema, key.type, section, (key.name,), option_set):
            yield replace(one, path=(*path, *one.path[1:]))
    elif number(value) is None or "-O" not in key.names:
        yield Finding(path, f"must be JSON text in quotes, not {shown(value)}", code="RW0303")


def _ignored(schema: VersionLine, section: str) -> set[str]:
    """Return the keys that do nothing; those of a base section count for every kind of drafting."""
    shared = (
        schema.ignored.get("DecodingBaseConfig", frozenset()) if section.endswith("DecodingConfig") else frozenset()
    )
    return set(schema.ignored.get(section, frozenset())) | set(shared)


def _product(schema: VersionLine, option_set: OptionSet) -> str:
    return f"{PRODUCTS[schema.engine]} {option_set.version}"


def _dropped(schema: VersionLine, value: Any, path: KeyPath, option_set: OptionSet) -> Iterator[Finding]:
    if path == ("sampler_type",) and value not in ("auto", "TorchSampler"):
        text = (
            f"{_product(schema, option_set)} no longer has {value}; TorchSampler is the only sampler: leave the key out"
        )
        yield Finding(path, text, link="https://github.com/NVIDIA/TensorRT-LLM/pull/18232", code="RW0305")
    else:
        yield Finding(
            path,
            f"{_product(schema, option_set)} takes this key and ignores it: leave it out",
            Level.WARN,
            code="RW0315",
        )


def _unknown_key(schema: VersionLine, section: str, value: Any, path: KeyPath, option_set: OptionSet) -> Finding:
    text = f"{_product(schema, option_set)} does not know this key"
    words = f"{dotted(path)}: {EXTRA}"
    near = _near_key(schema, section, path)
    if schema.decoding == "attributes" and section == "EagleDecodingConfig":
        words = f'ValueError: "{section}" object has no field "{path[-1]}"'
    hint = right_place(schema, path, value, option_set.options)
    if hint:
        text = f"{text}{hint.text}"
        return Finding(path, text, right=hint.right, link=hint.link, words=words, code="RW0301", near=near)
    names = schema.sections[section]
    text = f"{text}{_nested(str(path[-1]), names) or nearest(str(path[-1]), names)}"
    return Finding(path, text, words=words, code="RW0301", near=near)


def _nested(name: str, names: Collection[str]) -> str:
    """Return how a name with dots is written in a YAML file, where its first part is known; else empty."""
    first, *others = name.split(".")
    if not others or first not in names:
        return ""
    inside = ": ".join(f"{{{one}" for one in others)
    return f": its file has no keys with dots; write {first}: {inside}: ...{'}' * len(others)}"


def _near_key(schema: VersionLine, section: str, path: KeyPath) -> str:
    """Return the known name of a section that is one edit from an unknown one."""
    name = str(path[-1])
    if schema.engine != "tensorrt-llm" and section == schema.root:
        return one_edit(name.lstrip("-").split(".")[0].replace("_", "-"), schema.spellings[0])
    return one_edit(name, {*schema.sections[section], *_ignored(schema, section), *schema.tags(section)})


def _value(schema: VersionLine, key: Key, value: Any, path: KeyPath, option_set: OptionSet) -> Iterator[Finding]:
    found = _fitting(schema, key, value, path, option_set)
    yield from _unsure(list(found), schema, option_set) if key.unsure else found
    if key.given or (schema.engine != "tensorrt-llm" and len(path) == 1 and key.name in OF_THE_ENDPOINT):
        yield Finding(path, GIVEN, Level.WARN, code="RW0306")
    elif key.unsure:
        yield Finding(
            path,
            f"not sure that {_product(schema, option_set)} has this key; the image decides",
            Level.NOTE,
            code="RW0314",
        )


def _unsure(found: list[Finding], schema: VersionLine, option_set: OptionSet) -> Iterator[Finding]:
    """Weaken findings below a name that this version was not seen to have: its values are no surer than the name."""
    return softened(found, f"what {_product(schema, option_set)} takes here was not seen; the image decides")


def _fitting(schema: VersionLine, key: Key, value: Any, path: KeyPath, option_set: OptionSet) -> Iterator[Finding]:
    if value is None:
        if not key.nullable or (key.type in schema.unions and schema.decoding != "discriminated"):
            yield Finding(path, "must not be empty (null): write a value or leave the key out", code="RW0303")
    elif key.type in schema.unions:
        yield from _union(schema, schema.unions[key.type], value, path, option_set)
    elif key.type in schema.sections:
        yield from _section(schema, key.type, value, path, option_set)
    else:
        yield from check_value(schema, key, value, path)


def _section(schema: VersionLine, section: str, value: Any, path: KeyPath, option_set: OptionSet) -> Iterator[Finding]:
    if isinstance(value, Mapping):
        yield from check_section(schema, section, value, path, option_set)
    else:
        yield Finding(path, f"must be a mapping of `key: value` lines, not {shown(value)}", code="RW0303")


def _union(schema: VersionLine, union: Union, value: Any, path: KeyPath, option_set: OptionSet) -> Iterator[Finding]:
    if not isinstance(value, Mapping):
        form = "of `key: value` lines" if union.otherwise or union.untagged else f"with {union.tag}"
        yield Finding(path, f"must be a mapping {form}, not {shown(value)}", code="RW0302")
        return
    tag, section = union.tagged(value), union.section(value)
    if section is None:
        found = _unknown_tag(schema, union, value, (*path, union.tag), option_set)
        yield found
        meant = union.kinds.get(str(found.right.value)) if found.right else None
        yield from check_section(schema, meant, value, path, option_set) if meant else ()
        return
    if tag in union.unsure:
        yield Finding(
            (*path, union.tag), f"not sure that {_product(schema, option_set)} has {tag}", Level.NOTE, code="RW0314"
        )
    below = check_section(schema, section, value, path, option_set)
    yield from _unsure(list(below), schema, option_set) if tag in union.unsure else below


def _unknown_tag(
    schema: VersionLine, union: Union, value: Mapping[str, Any], path: KeyPath, option_set: OptionSet
) -> Finding:
    tag = value.get(union.tag)
    sure = [kind for kind in union.kinds if kind not in union.unsure]
    words = f"ValueError: Invalid decoding type: {tag}"
    if schema.decoding == "discriminated":
        tags = ", ".join(f"'{kind}'" for kind in sure)
        words = (
            f"{path[0]}: Input tag '{tag}' found using '{union.tag}' does not match any of the expected tags: {tags}"
        )
    if tag is None:
        return Finding(path, f"is missing; one of {', '.join(sure)}", words=words, code="RW0302")
    near = one_edit(str(tag), union.kinds)
    hint = renamed(schema, path, tag)
    text = f"{_product(schema, option_set)} does not know {tag}"
    if hint:
        text = f"{text}{hint.text}"
        return Finding(path, text, right=hint.right, link=hint.link, words=words, code="RW0302", near=near)
    text = f"{text}{nearest(str(tag), sure)}; it knows {', '.join(sure)}"
    return Finding(path, text, words=words, code="RW0302", near=near)
