"""Texts of hosts, engines, hubs and registries as a terminal, a record and a report may hold them. Pure.

What a host says is data: an escape sequence in it would move the cursor, set the clipboard or hide what follows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

LONGEST = 4000
"""Characters of one line that are kept: a screen and a half, and more than any sentence of ours has."""
ASKED_FOR = 1 << 20
"""The same for a line that a user has asked for: a chat's answer, what a command of theirs prints."""
_SEQUENCES = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    "|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)"  # OSC, DCS, SOS, PM, APC: clipboard, titles, links
    "|\x1b[ -/]*[0-~]"  # the short ones
)
_BREAKS = re.compile("\r\n|\r|\n")


def printable(text: str, keep: str = "", longest: int = LONGEST) -> str:
    """One line: escape sequences are gone, every other character that does not print is a blank.

    That covers control characters (C0, C1), bidirectional overrides, line separators of Unicode and lone surrogates.
    keep: characters that stay all the same, such as a tab. longest: characters; what is cut off is counted.
    """
    plain = text if text.isprintable() else _plain(text, keep)
    return plain if len(plain) <= longest else f"{plain[:longest]} [{len(plain) - longest} characters more]"


def _plain(text: str, keep: str) -> str:
    return "".join(char if char.isprintable() or char in keep else " " for char in _SEQUENCES.sub("", text))


def counted(number: int, noun: str) -> str:
    """`1 host`, `2 hosts`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def paragraph(text: str, longest: int = LONGEST) -> str:
    """A text of several lines, each of them printable; tabs stay."""
    return "\n".join(printable(line, "\t", longest) for line in _BREAKS.split(text))


def printable_values(value: Any) -> Any:
    """A value as JSON knows it, with every text in it, keys included, as a paragraph."""
    if isinstance(value, str):
        return paragraph(value)
    if isinstance(value, Mapping):
        return {printable_values(key): printable_values(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [printable_values(inner) for inner in value]
    return value
