"""An engine's flags at one version as its own source has them: files that the image's maker writes beside the code.

A version without a file is the one whose flags are written by hand and were compared with a real server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .flags import FOLDS, Flag, Kind

KINDS: dict[str, Kind] = {
    "bool": "switch",
    "int": "int",
    "float": "float",
    "size": "count",
    "str": "text",
    "json": "json",
    "mapping": "json",
}
"""Types of the table to kinds of flags; a section is JSON, and of `any` the flags by hand say more."""


@dataclass(frozen=True)
class Table:
    """The flags of a version, in the parts that an engine declares them in, and the sections that flags carry."""

    flags: tuple[Flag, ...]
    frontend: tuple[Flag, ...] = ()
    carried: Mapping[str, str] = field(default_factory=dict)
    """Section by the option that carries it."""
    sections: Mapping[str, Any] = field(default_factory=dict)

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse unknown keys of a section, and values outside of their choices. Raises ValueError."""
        for option, section in self.carried.items():
            for problem in self._problems(section, options.get(option)):
                raise ValueError(f"{option}: {problem}")

    def _problems(self, section: str, value: Any) -> Iterator[str]:
        if not isinstance(value, Mapping) or section not in self.sections:
            return
        accepted = self.sections[section]
        for key, inner in value.items():
            spec = accepted["keys"].get(key)
            if spec is None:
                yield from () if accepted["lenient"] else (f"{section}.{key}: Unexpected keyword argument",)
                continue
            yield from self._problems(spec["type"], inner)
            yield from _other_value(f"{section}.{key}", spec, inner)


def _other_value(name: str, spec: Mapping[str, Any], value: Any) -> Iterator[str]:
    if spec["choices"] and isinstance(value, str) and FOLDS[spec["fold"]](value) not in spec["choices"]:
        yield f"{name}: Input should be {', '.join(map(repr, spec['choices']))}"


def of_version(folder: Path, version: str, by_hand: Sequence[Flag], switch: Kind) -> Table | None:
    """Return the table of a version from its file, or None without one.

    by_hand: the flags of another version, for their fields, and for the kinds of those without a type.
    switch: the kind of a flag that is on or off.
    """
    file = folder / f"{version}.json"
    if not file.is_file():
        return None
    made = json.loads(file.read_text(encoding="utf-8"))
    hand = {name: flag for flag in by_hand for name in flag.names}
    parts: dict[bool, list[Flag]] = {True: [], False: []}
    carried = {}
    for option in made["options"]:
        flag = _flag(option, hand, switch)
        parts[option["frontend"]].append(flag)
        if option["type"] in made["sections"]:
            carried[flag.field] = option["type"]
    return Table(tuple(parts[False]), tuple(parts[True]), carried, made["sections"])


def _flag(option: Mapping[str, Any], hand: Mapping[str, Flag], switch: Kind) -> Flag:
    twin = next((hand[name] for name in option["names"] if name in hand), None)
    names = sorted(option["names"], key=lambda name: twin is None or name != twin.names[0])
    kind = KINDS.get(option["type"], "json")
    if option["type"] == "any":
        kind = twin.kind if twin else "texts"
    choices = tuple(option["choices"]) or None
    return Flag(tuple(names), switch if kind == "switch" else kind, option["default"], choices, option["fold"])


def absent(flags: Sequence[Flag], by_hand: Sequence[Flag]) -> tuple[Flag, ...]:
    """Return flags by hand that a version does not have: their options keep their defaults."""
    fields = {flag.field for flag in flags}
    return tuple(flag for flag in by_hand if flag.field not in fields)
