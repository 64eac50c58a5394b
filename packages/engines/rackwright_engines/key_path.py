"""Paths of keys, and how messages show them."""

from __future__ import annotations

import re
from collections.abc import Iterable

KeyPath = tuple[str | int, ...]
"""Keys from the top of the settings down to one value: `("engine", "kv_cache_config", "dtype")`."""

MASK = "*MASKED*"
BEGINNINGS = (
    r"(?:(?:sk-|hf_|nvapi-|gh[oprsu]_|github_pat_|glpat-|dckr_[op]at_|xox[abprs]-)[\w-]{8,}"
    r"|rk-[\w-]{43}|A[KS]IA[A-Z0-9]{16}|eyJ[\w-]{8,999}\.[\w-]{8,2000}\.[\w-]{8,999})"
)
"""Secrets that say by their beginning what they are."""
_SECRET = re.compile(BEGINNINGS)
LONGEST = 80
"""Characters of a key that a message shows."""
_PLAIN = re.compile(r"[^\s.\[\]'\"](?:[^.\[\]'\"\n]*[^\s.\[\]'\"])?")


def is_key(text: str) -> bool:
    """Return True for a text that is a secret by its beginning, and not a name: it has a digit."""
    return bool(_SECRET.fullmatch(text)) and any(char.isdigit() for char in text)


def dotted(path: Iterable[str | int]) -> str:
    """Return a key path as text: `endpoints.a.engine`, `allow_from[0]`; a key that would be misread is in quotes."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{_shown(part)}" if text else _shown(part)
    return text


def _shown(key: str) -> str:
    if is_key(key):
        return MASK
    short = key if len(key) <= LONGEST else f"{key[: LONGEST - 3]}..."
    return short if _PLAIN.fullmatch(short) or (short.endswith("...") and _PLAIN.fullmatch(key)) else ascii(short)
