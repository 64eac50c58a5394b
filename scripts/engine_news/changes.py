"""The differences between the options of two releases. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from rackwright_engines.key_path import dotted
from rackwright_engines.move import as_yaml
from rackwright_engines.options.schema import NO_DEFAULT, Key, VersionLine

ALIKE = 0.6
"""Likeness of two names, of 1, from which on one is taken for the other's new name."""
SETS_LATER, TO_NULL = "tensorrt-llm", ", now null"
"""TensorRT-LLM's validators set what its classes leave at null."""
Path = tuple[str, ...]


class State(Enum):
    """The end of something."""

    GONE = "gone"
    RENAMED = "renamed"
    MOVED = "moved"
    CHANGED = "changed"
    DEFAULT = "default"
    VALUES = "values"
    TYPE = "type"
    NEW = "new"
    UNREAD = "not read"


@dataclass(frozen=True)
class Change:
    """One thing that is not as it was."""

    name: str
    state: State
    text: str = ""
    """The difference in words; empty where the state says all."""


def option_changes(old: VersionLine, new: VersionLine) -> list[Change]:
    """Return what differs, option by option, in the order of the old release and then the new one's."""
    before, after = old.all_keys(), new.all_keys()
    added = {path: key for path, key in after.items() if path not in before}
    renamed = {path: to for path, key in before.items() if path not in after for to in _new_names(path, key, added)}
    every = [one for path, key in before.items() for one in _changes(path, key, after.get(path), renamed.get(path))]
    found = [one for one in every if not (new.engine == SETS_LATER and one.text.endswith(TO_NULL))]
    taken = set(renamed.values())
    return [*found, *(Change(dotted(path), State.NEW, _kind(key)) for path, key in added.items() if path not in taken)]


def _new_names(path: Path, key: Key, added: Mapping[Path, Key]) -> Iterator[Path]:
    """Yield the new name of an option: the one that has the old name as another one, else the one most like it."""
    beside = {to: one for to, one in added.items() if to[:-1] == path[:-1]}
    by_alias = [to for to, one in beside.items() if f"--{path[-1]}" in one.names]
    alike = {to[-1]: to for to, one in beside.items() if _same_content(key, one)}
    close = difflib.get_close_matches(path[-1], alike, n=1, cutoff=ALIKE)
    yield from (by_alias or [alike[name] for name in close])[:1]


def _same_content(one: Key, other: Key) -> bool:
    return replace(one, name="", names=(), origin="") == replace(other, name="", names=(), origin="")


def _changes(path: Path, old: Key, new: Key | None, renamed: Path | None) -> Iterator[Change]:
    name = dotted(path)
    if new is None and renamed is None:
        yield Change(name, State.GONE)
    elif new is None and renamed is not None:
        yield Change(name, State.RENAMED, f"perhaps {dotted(renamed)} now")
    elif new is not None:
        yield from _differences(name, old, new)


def _differences(name: str, old: Key, new: Key) -> Iterator[Change]:
    if _kind(old) != _kind(new) and "any" not in (old.type, new.type):
        yield Change(name, State.TYPE, f"was {_kind(old)}, is {_kind(new)}")
    lost, more = sorted(set(old.values) - set(new.values)), sorted(set(new.values) - set(old.values))
    if old.values and new.values and (lost or more):
        parts = [f"no {', '.join(lost)}" if lost else "", f"more: {', '.join(more)}" if more else ""]
        yield Change(name, State.VALUES, "; ".join(filter(None, parts)))
    if dict(old.bounds) != dict(new.bounds):
        yield Change(name, State.VALUES, f"bounds {_bounds(old)}, now {_bounds(new)}")
    if NO_DEFAULT not in (old.default, new.default) and old.default != new.default:
        yield Change(name, State.DEFAULT, f"{as_yaml(old.default)}, now {as_yaml(new.default)}")


def _kind(key: Key) -> str:
    """Return an option's type for people; the name of a section says no more than that it is one."""
    return "section" if key.type[:1].isupper() or key.type.startswith("union") else key.type


def _bounds(key: Key) -> str:
    return ", ".join(f"{name} {limit:g}" for name, limit in key.bounds.items()) or "none"
