"""The table of refusals: each code with its message and what that does not say (data/refusals, a file a subject).

Nothing is decided by it: errors, checks and rows carry their code, and this is what people look it up in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from rackwright_engines.quick_yaml import load_yaml

FOLDER = files("rackwright") / "data" / "refusals"


@dataclass(frozen=True)
class Refusal:
    """One kind of cause. `next` may hold Markdown with links from docs/how-to."""

    code: str
    says: str
    """Part of the message, `…` for names and numbers; of a check and a row of the gate its name."""
    means: str = ""
    """The reason, where the message does not say it."""
    next: str = ""
    """The next step, where the message does not say it."""
    earlier: bool = False
    """True where only earlier versions say it: a code is never removed or reused."""


@dataclass(frozen=True)
class KnownLine:
    """A line that belongs to a code, or to none: the words of a host, a server or SSH, or what is only said."""

    says: str
    """In backticks, as the page has it."""
    means: str
    next: str
    code: str = ""


@dataclass(frozen=True)
class RefusalRange:
    """The refusals of one subject; all codes begin alike, wherever in rackwright/ they are raised."""

    heading: str
    refusals: tuple[Refusal, ...]
    lines: tuple[KnownLine, ...]


@cache
def sections() -> tuple[RefusalRange, ...]:
    """Return all subjects, in the order of their codes."""
    found = [_section(load_yaml(file.read_text())) for file in FOLDER.iterdir() if file.name.endswith(".yaml")]
    return tuple(sorted(found, key=lambda section: section.refusals[0].code))


def _section(table: Mapping[str, Any]) -> RefusalRange:
    refusals = tuple(Refusal(code, **row) for code, row in table["codes"].items())
    return RefusalRange(table["heading"], refusals, tuple(KnownLine(**row) for row in table.get("words", ())))


def by_code() -> dict[str, tuple[RefusalRange, Refusal]]:
    """Return every code with its subject."""
    return {refusal.code: (section, refusal) for section in sections() for refusal in section.refusals}


def lines_of(section: RefusalRange, code: str) -> Iterator[KnownLine]:
    """Return the lines that come with a code."""
    return (row for row in section.lines if row.code == code)
