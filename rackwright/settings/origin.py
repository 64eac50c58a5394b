"""Where a value comes from: file and line, kept for every key of the merged settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rackwright.masks import MASK, is_key

KeyPath = tuple[str | int, ...]
"""Keys from the top of the settings down to one value: `("engine", "kv_cache_config", "dtype")`."""


@dataclass(frozen=True, order=True)
class Origin:
    """A file as the user knows it (relative to the site) and a line; line 0 means the file as a whole."""

    file: str
    line: int = 0
    word: str = field(default="", compare=False)
    """The key as it was written, where it is Ansible's name for ours."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


Origins = dict[KeyPath, Origin]


def origin_of(origins: Mapping[KeyPath, Origin], path: KeyPath) -> Origin | None:
    """Origin of the value at `path`, or of the nearest key above it; None when nothing is known of it."""
    for length in range(len(path), 0, -1):
        if path[:length] in origins:
            return origins[path[:length]]
    return None


LONGEST = 80
"""Characters of a key that a message shows."""
_PLAIN = re.compile(r"[^\s.\[\]'\"](?:[^.\[\]'\"\n]*[^\s.\[\]'\"])?")


def dotted(path: Iterable[str | int]) -> str:
    """A key path for people: `endpoints.a.engine`, `allow_from[0]`; a key that is read wrongly so stands in quotes."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{_shown(part)}" if text else _shown(part)
    return text


def _shown(key: str) -> str:
    if is_key(key):
        return MASK
    short = key if len(key) <= LONGEST else f"{key[: LONGEST - 3]}..."
    return short if _PLAIN.fullmatch(short) or (short.endswith("...") and _PLAIN.fullmatch(key)) else ascii(short)
