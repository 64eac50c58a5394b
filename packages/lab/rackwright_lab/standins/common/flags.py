"""A command line's flags as data, and an argparse parser made of them; what it does not know it refuses (exit 2)."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["text", "int", "count", "float", "json", "switch", "pair", "texts", "numbers"]
FOLDS: dict[str, Callable[[str], str]] = {
    "": str,
    "upper": str.upper,
    "lower": str.lower,
    "snake": lambda text: text.lower().replace("-", "_"),
}
"""Ways in which an engine reads a value before it compares it with its choices."""


@dataclass(frozen=True)
class Flag:
    """One flag: its spellings, what it takes (`pair`: --x and --no-x), its default, its values and how they fold."""

    names: tuple[str, ...]
    kind: Kind = "text"
    default: Any = None
    choices: tuple[str, ...] | None = None
    fold: str = ""

    @property
    def field(self) -> str:
        """Return the name of the option that it sets."""
        return self.names[0].removeprefix("--").replace("-", "_")


def flags(kind: Kind, names: str, default: Any = None) -> tuple[Flag, ...]:
    """Return flags of one kind and default, by their names in one string; spellings are joined with `=`."""
    return tuple(Flag(tuple(one.split("=")), kind, default) for one in names.split())


def count(text: str) -> int:
    """Read 131072, 128k (thousands) or 128K (1024s) as argparse types do."""
    found = re.fullmatch(r"(\d+)([kKmM]?)", text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"invalid int value: {text!r}")
    return int(found[1]) * {"": 1, "k": 1000, "K": 1024, "m": 10**6, "M": 1024**2}[found[2]]


def section(text: str) -> Any:
    """Read a section as JSON."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"Value {text} cannot be converted to json: {error}") from error


_TYPES: dict[Kind, Any] = {"text": str, "int": int, "count": count, "float": float, "json": section}


def add(parser: argparse.ArgumentParser, table: Sequence[Flag]) -> None:
    """Give a parser the flags of a table."""
    for flag in table:
        parser.add_argument(*flag.names, dest=flag.field, default=flag.default, **_taken(flag))


def _taken(flag: Flag) -> dict[str, Any]:
    if flag.kind == "switch":
        return {"action": "store_true"}
    if flag.kind == "pair":
        return {"action": argparse.BooleanOptionalAction}
    if flag.kind in ("texts", "numbers"):
        return {"nargs": "+", "type": int if flag.kind == "numbers" else str}
    kind = FOLDS[flag.fold] if flag.kind == "text" else _TYPES[flag.kind]
    return {"type": kind, "choices": flag.choices}
