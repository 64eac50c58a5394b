"""The changes when a profile moves to another version of its engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rackwright_engines.data import PRODUCTS
from rackwright_engines.finding import Finding, Level
from rackwright_engines.key_path import KeyPath
from rackwright_engines.move import as_yaml
from rackwright_engines.options.schema import NO_DEFAULT, Key, VersionLine, line_for
from rackwright_engines.version import bare


def changed_defaults(options: Mapping[str, Any], old: str, new: str, engine: str) -> Iterator[Finding]:
    """Yield a note for each key that is not set and that has another default in the new version."""
    older, newer = (line_for(engine, bare(version))[0] for version in (old, new))
    yield from defaults_between(options, older, newer, f"{PRODUCTS[engine]} {new}")


def defaults_between(
    options: Mapping[str, Any], older: VersionLine, newer: VersionLine, product: str
) -> Iterator[Finding]:
    """Yield the same between two lines. product: the new version, for messages."""
    for path in older.all_keys():
        before, after = _key(older, options, path), _key(newer, options, path)
        if before and after and not _is_set(options, path) and _has_section(options, path):
            yield from _changed(path, before, after, product)


def _key(schema: VersionLine, options: Mapping[str, Any], path: KeyPath) -> Key | None:
    """Return the key at a path, of the kind of drafting that the options have."""
    section: str | None = schema.root
    here: Any = options
    for part in path[:-1]:
        above = schema.sections[section].get(str(part)) if section else None
        here = here.get(part, {}) if isinstance(here, Mapping) else {}
        section = schema.section(above, here) if above else None
    return schema.sections[section].get(str(path[-1])) if section else None


def _changed(path: KeyPath, old: Key, new: Key, product: str) -> Iterator[Finding]:
    both_known = old.default is not NO_DEFAULT and new.default is not NO_DEFAULT
    if both_known and old.default != new.default:
        text = f"is not set; its default was {as_yaml(old.default)} and is {as_yaml(new.default)} in {product}"
        yield Finding(path, text, Level.NOTE, code="RW0318")


def _is_set(options: Mapping[str, Any], path: KeyPath) -> bool:
    here: Any = options
    for part in path:
        if not isinstance(here, Mapping) or part not in here:
            return False
        here = here[part]
    return True


def _has_section(options: Mapping[str, Any], path: KeyPath) -> bool:
    """Defaults count at top level, in sections that are set, and for the MoE backend, which always runs."""
    return len(path) == 1 or _is_set(options, path[:-1]) or path == ("moe_config", "backend")
