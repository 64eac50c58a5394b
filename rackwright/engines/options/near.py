"""Names that are one edit from another: one letter more, less, or another one, or two beside each other swapped."""

from __future__ import annotations

from collections.abc import Iterable


def one_edit(word: str, names: Iterable[str]) -> str:
    """The name that is one edit from a word; empty where the word is one of them, or none is as near."""
    known = sorted(names)
    return "" if word in known else next((name for name in known if is_one_edit(word, name)), "")


def is_one_edit(word: str, name: str) -> bool:
    """True if one letter more, less, or another one, or two letters swapped make `name` of `word`."""
    if word == name or abs(len(word) - len(name)) > 1:
        return False
    start = _common(word, name)
    one, other = word[start:], name[start:]
    swapped = len(one) > 1 and one[1::-1] + one[2:] == other
    return swapped or one[1:] == other[1:] or one[1:] == other or one == other[1:]


def _common(word: str, name: str) -> int:
    """How many letters both begin with."""
    pairs = zip(word, name, strict=False)
    return next((index for index, (one, other) in enumerate(pairs) if one != other), min(len(word), len(name)))
