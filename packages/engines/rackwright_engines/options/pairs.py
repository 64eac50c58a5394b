"""Check rules between options of vLLM and SGLang; the rules are data, `data/ENGINE/rules.yaml`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from rackwright_engines.data import PRODUCTS, table
from rackwright_engines.finding import Finding, Level
from rackwright_engines.key_path import KeyPath
from rackwright_engines.options.commandline import by_key, number, parsed, spelled
from rackwright_engines.options.schema import Json, VersionLine, is_of
from rackwright_engines.version import bare

CODE = "RW0343"
KEY = re.compile(r"\{([^}]+)\}")
COMPARED: dict[str, Callable[[int, int], bool]] = {
    "below": lambda one, other: one < other,
    "above": lambda one, other: one > other,
    "like": lambda one, other: one == other,
    "unlike": lambda one, other: one != other,
    "at_least": lambda one, other: one >= other,
    "uneven": lambda one, other: other > 0 and one % other > 0,
}


def pairs(schema: VersionLine, version: str, options: Mapping[str, Any], arguments: Sequence[str]) -> list[Finding]:
    """Return what an engine refuses at its start because of two options together.

    version: as the data name it. arguments: further words of the command line, which come after the file's.
    """
    given = by_key(schema, _written(schema, options), arguments)
    return [
        _finding(schema, rule, given, options, bare(version))
        for rule in rules_of(schema.engine).values()
        if is_of(rule, bare(version))
        and all(_holds(test, _value(given, key), given) for key, test in rule["when"].items())
    ]


@cache
def rules_of(engine: str) -> Mapping[str, Json]:
    """Return all rules of an engine by their names."""
    return dict(table(f"{engine}/rules"))


def _written(schema: VersionLine, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the engine sees of its file: where vLLM's reader cannot negate, it leaves out what is false."""
    leaves_out = schema.engine == "vllm" and not schema.negates
    return {name: value for name, value in options.items() if not (leaves_out and value is False)}


def _value(given: Mapping[str, Any], key: str) -> Any:
    name, *below = key.split(".")
    here = given.get(name)
    for part in below:
        section = parsed(here)
        here = section.get(part) if isinstance(section, Mapping) else None
    return here


def _holds(test: Any, value: Any, given: Mapping[str, Any]) -> bool:
    if isinstance(test, Mapping):
        return all(_compares(operator, value, other, given) for operator, other in test.items())
    if test in ("given", "missing"):
        return (value in (None, False, "")) is (test == "missing")
    return str(value).lower() in [str(one).lower() for one in (test if isinstance(test, list) else [test])]


def _compares(operator: str, value: Any, other: Any, given: Mapping[str, Any]) -> bool:
    """Compare a number with another option's or a plain one; False where one of the two is unknown."""
    one, two = _largest(value), _largest(other if isinstance(other, int) else _value(given, other))
    if operator == "not_below":
        return one is None or two is None or one >= two
    return one is not None and two is not None and COMPARED[operator](one, two)


def _largest(value: Any) -> int | None:
    """Return a whole number, or the largest one of a list."""
    if not isinstance(value, list):
        return number(value)
    found = [one for one in map(number, value) if one is not None]
    return max(found, default=None) if len(found) == len(value) else None


def _finding(
    schema: VersionLine, rule: Json, given: Mapping[str, Any], options: Mapping[str, Any], version: str
) -> Finding:
    says = KEY.sub(lambda found: str(_largest(_value(given, found[1])) or _value(given, found[1])), rule["says"])
    level = Level(rule.get("level", "refuse"))
    checks = f"; {PRODUCTS[schema.engine]} {version} checks that at its start" if level is Level.REFUSE else ""
    return Finding(_path(schema, rule["at"], options), f"{says}{checks}", level, code=CODE)


def _path(schema: VersionLine, key: str, options: Mapping[str, Any]) -> KeyPath:
    """Return the path of a key, under the name that the user gave it."""
    name, *below = key.split(".")
    return (next(_names(schema, name, options), name), *below)


def _names(schema: VersionLine, key: str, options: Mapping[str, Any]) -> Iterator[str]:
    for name in map(str, options):
        meant = spelled(schema, name)
        if meant and meant.key.name == key and not meant.below:
            yield name
