"""The names that are nearest to a text."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(text: str, names: Iterable[str]) -> str:
    """` (did you mean NAME?)` for the closest of `names`, in any case of letters; empty when none is close."""
    folded = {name.casefold(): name for name in sorted(names)}
    found = difflib.get_close_matches(text.casefold(), folded, n=1, cutoff=0.6)
    return f" (did you mean {folded[found[0]]}?)" if found else ""


def one_edit(text: str, names: Iterable[str]) -> str:
    """Return the name that is one edit from a text; empty where it is one of them, or none is as near."""
    candidates = sorted(names)
    return "" if text in candidates else next((name for name in candidates if is_one_edit(text, name)), "")


def is_one_edit(text: str, name: str) -> bool:
    """Return True if one letter more, less, or another one, or two letters swapped make `name` of `text`."""
    if text == name or abs(len(text) - len(name)) > 1:
        return False
    start = _common(text, name)
    one, other = text[start:], name[start:]
    swapped = len(one) > 1 and one[1::-1] + one[2:] == other
    return swapped or one[1:] == other[1:] or one[1:] == other or one == other[1:]


def _common(text: str, name: str) -> int:
    """Return how many letters both begin with."""
    pairs = zip(text, name, strict=False)
    return next((index for index, (one, other) in enumerate(pairs) if one != other), min(len(text), len(name)))
