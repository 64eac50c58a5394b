"""Checks an engine's options against the data of its version: unknown keys, types, values, bounds, and rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rackwright.engines.commandline import Spelling, number, parsed, spelled
from rackwright.engines.finding import Finding, Level
from rackwright.engines.renames import renamed, right_place
from rackwright.engines.rules import rules, switches
from rackwright.engines.schema import Key, Union, VersionLine, line_for, lines, neighbours
from rackwright.engines.version import bare, not_before
from rackwright.settings.key_fix import Move
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
    "size": "a whole number, as 8192 or 8k",
    "json": "JSON text in quotes",
    "dict[int,int]": "a mapping of whole numbers",
}
SIGNS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}


def check_options(
    engine_kind: str, version: str, options: Mapping[str, Any], image: VersionLine | None = None
) -> list[Finding]:
    """What is wrong with the options of one engine for one version.

    engine_kind: `tensorrt-llm`, `vllm` or `sglang`. version: as the image's tag names it; when no line was written
    for it, the lines before and after it count, a warning says so, and only what neither takes is refused.
    options: the engine's own YAML. image: what the very image accepts, where it was asked; it counts alone then.
    Returns findings with paths below the options; an empty list when nothing is to be said.
    """
    line, known = line_for(engine_kind, bare(version)) if image is None else (image, True)
    if known:
        return _checked(line, version, options)
    around = neighbours(engine_kind, bare(version))
    found = [_checked(one, version, options) for one in around]
    doubt = _unknown_version(engine_kind, version, around)
    return [doubt, *_softened(around, found, version)]


def _checked(line: VersionLine, version: str, options: Mapping[str, Any]) -> list[Finding]:
    place = _Place(version, options)
    found = list(_mapping(line, line.root, options, (), place))
    more = {"tensorrt-llm": rules, "vllm": switches}.get(line.engine)
    return found + (more(line, options) if more else [])


class _Place:
    """What messages need to know of the whole: the version as the user wrote it, and all options."""

    def __init__(self, version: str, options: Mapping[str, Any]) -> None:
        self.version = version
        self.options = options


def _unknown_version(engine: str, version: str, around: tuple[VersionLine, ...]) -> Finding:
    names = " and ".join(f"{name}'s" for name in _nearest(around, version))
    text = f"the options of {PRODUCTS[engine]} {version} are not known here, so they were checked as {names}"
    return Finding(
        (), f"{text}; only what neither knows is refused, the image has the last word", Level.WARN, code="RW0316"
    )


def _nearest(around: tuple[VersionLine, ...], version: str) -> list[str]:
    """The versions of the lines around one that are nearest to it."""
    return [_near(line, version) for line in around]


def _near(line: VersionLine, version: str) -> str:
    after = not not_before(bare(version), line.name)
    return line.versions[0 if after else -1] if line.versions else line.name


def _softened(around: tuple[VersionLine, ...], found: list[list[Finding]], version: str) -> Iterator[Finding]:
    """What all neighbours refuse, as it is; what only one refuses, or an older line knows, as a warning."""
    seen: set[KeyPath] = set()
    for line, findings in reversed(list(zip(around, found, strict=True))):
        for one in findings:
            everywhere = all(any(two.path == one.path and _stops(two) for two in others) for others in found)
            if _stops(one) and everywhere and not _elsewhere(around, one.path):
                if one.path not in seen:
                    yield one
            elif _stops(one):
                yield _doubtful(line, around, one, version)
            elif one.path not in seen and all(one in others for others in found):
                yield one
        seen |= {one.path for one in findings}


def _stops(finding: Finding) -> bool:
    return finding.level is Level.REFUSE


def _elsewhere(around: tuple[VersionLine, ...], path: KeyPath) -> bool:
    """Whether a key that the only neighbour lacks is one of another line: the version may be any of them."""
    others = lines(around[0].engine).values() if len(around) == 1 else ()
    keyed = tuple(map(str, path))
    return keyed not in around[0].all_keys() and any(keyed in other.all_keys() for other in others)


def _doubtful(line: VersionLine, around: tuple[VersionLine, ...], one: Finding, version: str) -> Finding:
    names = " and ".join(_nearest(around, version))
    said = one.text.replace(f"{PRODUCTS[line.engine]} {version}", _near(line, version))
    text = f"{said}; not refused, since {version} is not known here and was checked as {names}"
    return Finding(one.path, text, Level.WARN, one.right, one.link, code="RW0316")


def _mapping(
    line: VersionLine, section: str, options: Mapping[str, Any], at: KeyPath, place: _Place
) -> Iterator[Finding]:
    if line.engine != "tensorrt-llm" and section == line.root:
        yield from _words(line, options, place)
        return
    keys = line.sections[section]
    tags = {union.tag for union in line.unions.values() if section in union.kinds.values()}
    for name, value in options.items():
        path = (*at, str(name))
        if name in keys:
            yield from _value(line, keys[name], value, path, place)
        elif name in _ignored(line, section) or section in line.lenient:
            yield from _dropped(line, value, path, place)
        elif name not in tags and not line.open:
            yield _unknown_key(line, section, value, path, place)
        elif name not in tags:
            yield Finding(
                path, f"not checked: no data on this key of {_product(line, place)}", Level.NOTE, code="RW0314"
            )


def _words(line: VersionLine, options: Mapping[str, Any], place: _Place) -> Iterator[Finding]:
    """Keys that become words of a command line."""
    before: dict[tuple[str, tuple[str, ...]], str] = {}
    for name, value in options.items():
        path, meant = (str(name),), spelled(line, str(name))
        if meant is None:
            yield _unknown_key(line, line.root, value, path, place)
            continue
        first = before.setdefault((meant.key.name, meant.below), str(name))
        if first != name:
            yield Finding(path, f"and {first} are the same option under two names: keep one", Level.WARN, code="RW0306")
        if not meant.works:
            text = f"is not a name that {_product(line, place)} takes from its file, only what it means is clear"
            yield Finding(
                path, text, Level.WARN, Move((".".join((meant.key.name, *meant.below)),), value), code="RW0315"
            )
        yield from _word(line, meant, value, path, place)


def _word(line: VersionLine, meant: Spelling, value: Any, path: KeyPath, place: _Place) -> Iterator[Finding]:
    if meant.below:
        section = meant.key.type
        nested: Any = value
        for name in reversed(meant.below):
            nested = {name: nested}
        if section in line.sections:
            yield from _mapping(line, section, nested, path, place)
    elif meant.key.unfit and line.picky:
        text = f"{_product(line, place)} refuses this key in its file: give it as a word of `arguments:`"
        yield Finding(path, text, Level.WARN, code="RW0315")
    elif meant.key.type in line.sections and value is not None:
        yield from _json_section(line, meant.key, value, path, place)
    else:
        yield from _value(line, meant.key, value, path, place)


def _json_section(line: VersionLine, key: Key, value: Any, path: KeyPath, place: _Place) -> Iterator[Finding]:
    """An option whose value is a mapping as JSON text; of `-O` a number is a level."""
    section = parsed(value)
    if isinstance(value, Mapping) and not line.mappings:
        yield Finding(path, f"must be JSON text in quotes, not {value!r}", code="RW0303")
    elif isinstance(section, Mapping):
        yield from _mapping(line, key.type, section, path, place)
    elif number(value) is None or "-O" not in key.names:
        yield Finding(path, f"must be JSON text in quotes, not {value!r}", code="RW0303")


def _ignored(line: VersionLine, section: str) -> set[str]:
    """Keys that do nothing; those of a base section count for every kind of drafting."""
    shared = line.ignored.get("DecodingBaseConfig", frozenset()) if section.endswith("DecodingConfig") else frozenset()
    return set(line.ignored.get(section, frozenset())) | set(shared)


def _product(line: VersionLine, place: _Place) -> str:
    return f"{PRODUCTS[line.engine]} {place.version}"


def _dropped(line: VersionLine, value: Any, path: KeyPath, place: _Place) -> Iterator[Finding]:
    if path == ("sampler_type",) and value not in ("auto", "TorchSampler"):
        text = f"{_product(line, place)} has no {value} any more; TorchSampler is the only sampler: leave the key out"
        yield Finding(path, text, link="https://github.com/NVIDIA/TensorRT-LLM/pull/18232", code="RW0305")
    else:
        yield Finding(
            path, f"{_product(line, place)} takes this key and ignores it: leave it out", Level.WARN, code="RW0315"
        )


def _unknown_key(line: VersionLine, section: str, value: Any, path: KeyPath, place: _Place) -> Finding:
    text = f"{_product(line, place)} does not know this key"
    words = f"{dotted(path)}: {EXTRA}"
    if line.decoding == "attributes" and section == "EagleDecodingConfig":
        words = f'ValueError: "{section}" object has no field "{path[-1]}"'
    hint = right_place(line, path, value, place.options)
    if hint:
        return Finding(path, f"{text}{hint.text}", right=hint.right, link=hint.link, words=words, code="RW0301")
    return Finding(path, f"{text}{nearest(str(path[-1]), line.sections[section])}", words=words, code="RW0301")


def _value(line: VersionLine, key: Key, value: Any, path: KeyPath, place: _Place) -> Iterator[Finding]:
    if value is None:
        if not key.nullable or (key.type in line.unions and line.decoding != "discriminated"):
            yield Finding(path, "must not be empty (null): write a value or leave the key out", code="RW0303")
    elif key.type in line.unions:
        yield from _union(line, line.unions[key.type], value, path, place)
    elif key.type in line.sections:
        yield from _section(line, key.type, value, path, place)
    else:
        yield from _plain(line, key, value, path)
    if key.given:
        yield Finding(path, "is given on the command line already: leave it out", Level.WARN, code="RW0306")
    elif key.unsure:
        yield Finding(
            path, f"not sure that {_product(line, place)} has this key; the image decides", Level.NOTE, code="RW0314"
        )


def _section(line: VersionLine, section: str, value: Any, path: KeyPath, place: _Place) -> Iterator[Finding]:
    if isinstance(value, Mapping):
        yield from _mapping(line, section, value, path, place)
    else:
        yield Finding(path, f"must be a mapping of `key: value` lines, not {value!r}", code="RW0303")


def _union(line: VersionLine, union: Union, value: Any, path: KeyPath, place: _Place) -> Iterator[Finding]:
    if not isinstance(value, Mapping):
        said = "of `key: value` lines" if union.otherwise else f"with {union.tag}"
        yield Finding(path, f"must be a mapping {said}, not {value!r}", code="RW0302")
        return
    tag = union.tagged(value)
    if not isinstance(tag, str) or tag not in union.kinds:
        found = _unknown_tag(line, union, value, (*path, union.tag), place)
        yield found
        meant = union.kinds.get(str(found.right.value)) if found.right else None
        yield from _mapping(line, meant, value, path, place) if meant else ()
        return
    if tag in union.unsure:
        yield Finding((*path, union.tag), f"not sure that {_product(line, place)} has {tag}", Level.NOTE, code="RW0314")
    yield from _mapping(line, union.kinds[tag], value, path, place)


def _unknown_tag(line: VersionLine, union: Union, value: Mapping[str, Any], path: KeyPath, place: _Place) -> Finding:
    tag = value.get(union.tag)
    known = [kind for kind in union.kinds if kind not in union.unsure]
    words = f"ValueError: Invalid decoding type: {tag}"
    if line.decoding == "discriminated":
        tags = ", ".join(f"'{kind}'" for kind in known)
        words = (
            f"{path[0]}: Input tag '{tag}' found using '{union.tag}' does not match any of the expected tags: {tags}"
        )
    if tag is None:
        return Finding(path, f"is missing; one of {', '.join(known)}", words=words, code="RW0302")
    hint = renamed(line, path, tag)
    text = f"{_product(line, place)} does not know {tag}"
    if hint:
        return Finding(path, f"{text}{hint.text}", right=hint.right, link=hint.link, words=words, code="RW0302")
    return Finding(path, f"{text}{nearest(str(tag), known)}; it knows {', '.join(known)}", words=words, code="RW0302")


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(PLAIN[kind])


def _plain(line: VersionLine, key: Key, value: Any, path: KeyPath) -> Iterator[Finding]:
    kind = WORDS.get(key.type, f"a {key.type}".replace("[", " of ").replace("]", ""))
    try:
        plain = _read(line, key, value)
    except (ValidationError, ValueError):
        yield Finding(path, f"must be {kind}, not {value!r}", code="RW0303")
        return
    if key.values and str(plain) not in key.values:
        yield Finding(
            path,
            f"must be one of {', '.join(key.values)}{nearest(str(plain), key.values)}, not {value!r}",
            code="RW0304",
        )
    measured = isinstance(plain, int | float)
    wrong = [bound for bound in key.bounds if measured and not _within(plain, bound, key.bounds[bound])]
    if wrong:
        limits = " and ".join(f"{SIGNS[bound]} {number}" for bound, number in key.bounds.items())
        yield Finding(path, f"must be {limits}, not {value!r}", code="RW0304")


def _read(line: VersionLine, key: Key, value: Any) -> Any:
    """A value as its type. Raises ValueError for one that does not fit, of pydantic or its own."""
    if key.type == "json":
        return _json(line, value)
    if key.type == "size":
        return _size(value)
    as_word = line.engine != "tensorrt-llm" and key.type == "str"
    if as_word and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if as_word and isinstance(value, Mapping) and line.mappings:
        return value
    return _adapter(key.type).validate_python(value)


def _json(line: VersionLine, value: Any) -> Any:
    """JSON text, or a mapping where the file's reader makes text of it."""
    if isinstance(value, Mapping) and line.mappings:
        return value
    found = parsed(_adapter("str").validate_python(value))
    if found is None and value != "null":
        raise ValueError(value)
    return found


def _size(value: Any) -> Any:
    """A whole number as `8k`, or `auto`."""
    if value == "auto":
        return value
    found = number(value)
    if found is None:
        raise ValueError(value)
    return found


def _within(value: float, bound: str, limit: float) -> bool:
    checks = {"gt": value > limit, "ge": value >= limit, "lt": value < limit, "le": value <= limit}
    return checks[bound]
