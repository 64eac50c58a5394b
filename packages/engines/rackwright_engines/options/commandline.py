"""The keys of a file as vLLM's and SGLang's command line, under any name that their parser takes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rackwright_engines.options.schema import Key, VersionLine

SIZE = re.compile(r"^(\d+(?:\.\d+)?)([kmgt]?)$", re.IGNORECASE)
POWERS = "kmgt"


@dataclass(frozen=True)
class Spelling:
    """The option that a name means."""

    key: Key
    negated: bool = False
    """True for `no-NAME` of an option that is on or off."""
    below: tuple[str, ...] = ()
    """The part behind the dots of `compilation-config.pass_config.enable_noop`."""
    works: bool = True
    """False for a name that says what is meant and that the engine does not take from its file."""


def spelled(schema: VersionLine, name: str) -> Spelling | None:
    """Return the option of `schema` that a name means: its name, an alias, a beginning that only it has, a short flag.

    vLLM reads underscores as dashes and takes `no-NAME`; SGLang does neither. None for a name that means nothing.
    """
    head, *below = name.lstrip("-").split(".")
    plain = head.replace("_", "-")
    exact = head if schema.engine == "sglang" else plain
    if below and schema.engine == "sglang":
        return None
    for spelling, works in ((exact, True), (plain, False)):
        found = _long(schema).get(spelling) or _beginning(schema, spelling)
        if found:
            return Spelling(schema.sections[schema.root][found[0]], found[1], tuple(below), works)
    short = _short(schema).get(head)
    return Spelling(schema.sections[schema.root][short], False, tuple(below), False) if short else None


def exactly(schema: VersionLine, name: str) -> str | None:
    """Return the key that a whole name, alias or short flag means; None for a mere beginning of one."""
    spelling = name.lstrip("-")
    found = _long(schema).get(spelling.replace("_", "-"))
    return found[0] if found else _short(schema).get(spelling)


def _long(schema: VersionLine) -> Mapping[str, tuple[str, bool]]:
    return schema.spellings[0]


def _short(schema: VersionLine) -> Mapping[str, str]:
    return schema.spellings[1]


def _beginning(schema: VersionLine, spelling: str) -> tuple[str, bool] | None:
    """Return what a word begins, as argparse lets it be abbreviated: None when it begins nothing, or more than one."""
    found = {meaning for name, meaning in _long(schema).items() if spelling and name.startswith(spelling)}
    return found.pop() if len(found) == 1 else None


def by_key(schema: VersionLine, options: Mapping[str, Any], arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Options by the keys of `schema`, whatever name they have; the words of a command line win, as they come last."""
    found: dict[str, Any] = {}
    for name, value in [*options.items(), *((name, value) for _, name, value in words(arguments))]:
        meant = spelled(schema, str(name))
        if meant is None:
            found[str(name)] = value
        elif meant.below:
            section = parsed(found.get(meant.key.name))
            found[meant.key.name] = _nested(section if isinstance(section, Mapping) else {}, meant.below, value)
        else:
            found[meant.key.name] = not value if meant.negated else value
    return found


def _nested(above: Mapping[str, Any], below: tuple[str, ...], value: Any) -> dict[str, Any]:
    name, *deeper = below
    inner = above.get(name)
    return {
        **above,
        name: _nested(inner if isinstance(inner, Mapping) else {}, tuple(deeper), value) if deeper else value,
    }


def words(arguments: Sequence[str]) -> Iterator[tuple[int, str, Any]]:
    """Places, names and values of `--tp 8`, `-tp 8`, `--tp=8` and `--enforce-eager`."""
    for index, option in enumerate(arguments):
        if not is_option(option):
            continue
        name, is_, value = option.partition("=")
        follows = arguments[index + 1] if index + 1 < len(arguments) else "-"
        yield index, name, value if is_ else True if is_option(follows) else follows


def is_option(argument: str) -> bool:
    """Return True if an argument begins an option: a number below zero is a value."""
    return argument.startswith("-") and number(argument) is None


def parsed(value: Any) -> Any:
    """Return JSON text as values; None for text that is no JSON, anything else as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None


def number(value: Any) -> int | None:
    """Return the whole number that a value is on a command line: 8, "8", `8k` or `8K` (8000, 8192); None for others."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    if isinstance(value, int) or re.fullmatch(r"-?\d+", value):
        return int(value)
    found = SIZE.match(value)
    if not found:
        return None
    power = POWERS.index(found[2].lower()) + 1 if found[2] else 0
    return int(float(found[1]) * (1024 if found[2].isupper() else 1000) ** power)
