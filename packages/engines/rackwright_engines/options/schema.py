"""Options of one version line of an engine: sections of keys, made from a base line and what later lines change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

from rackwright_engines.data import files, table
from rackwright_engines.version import FINAL, Version, nearest_line, not_before, parse_version

Json = dict[str, Any]
EXTENDS = "_extends"
BOUNDS = ("gt", "ge", "lt", "le")
NO_DEFAULT = object()
"""Marks a key whose default is its section's, or that has none."""


@dataclass(frozen=True)
class Key:
    """One option: its type, allowed values and bounds."""

    name: str
    type: str
    nullable: bool = False
    default: Any = NO_DEFAULT
    values: tuple[str, ...] = ()
    more: bool = False
    """True where the engine may take other values too: a plugin adds them, or its class only names the usual ones."""
    fold: str = ""
    """`upper` or `lower` where the engine reads the value in any case, and the values are written so; `snake` where it
    reads dashes as underscores, too."""
    bounds: Mapping[str, float] = field(default_factory=dict)
    """`gt`, `ge`, `lt`, `le` to the number."""
    unsure: bool = False
    """True when this version was not seen to have it, only the ones around it."""
    given: bool = False
    """True if the command line already gives it, so that the YAML must not have it."""
    names: tuple[str, ...] = ()
    """Its other names on the command line, with their dashes."""
    required: bool = False
    """True if its section must have it."""
    unfit: bool = False
    """True when the engine takes it on its command line and not from its file."""
    origin: str = ""
    """The engine's file that says it, and the first version that says it so; empty where it was written by hand."""


@dataclass(frozen=True)
class Union:
    """Sections of which a tag picks one, as `decoding_type` does."""

    tag: str
    kinds: Mapping[str, str]
    unsure: frozenset[str]
    otherwise: str | None = None
    """The tag that is meant where none is given; None when one must be."""
    untagged: str | None = None
    """The section that counts without a tag, where the engine finds the kind by the keys."""

    def tagged(self, value: Mapping[str, Any]) -> Any:
        """Return the tag of a value."""
        return value.get(self.tag, self.otherwise)

    def section(self, value: Mapping[str, Any]) -> str | None:
        """Return the name of the section that a value must fit; None for an unknown tag."""
        tag = self.tagged(value)
        return self.untagged if tag is None else self.kinds.get(tag) if isinstance(tag, str) else None


@dataclass(frozen=True)
class VersionLine:
    """The options of one version line, all of them."""

    engine: str
    name: str
    versions: tuple[str, ...]
    root: str
    open: bool
    """True when keys that are not listed are not checked, rather than unknown."""
    decoding: str
    """The way in which a speculative_config is read: by `attributes`, `typed`, or `discriminated` by its tag."""
    sections: Mapping[str, Mapping[str, Key]]
    unions: Mapping[str, Union]
    ignored: Mapping[str, frozenset[str]]
    """Keys that are taken and do nothing, by section."""
    lenient: frozenset[str] = frozenset()
    """Sections that take keys which they do not have, and ignore them."""
    mappings: bool = False
    """True where a value that is JSON may be written as a mapping."""
    negates: bool = False
    """True where `key: false` of the file is read as `--no-key`, rather than left out."""
    picky: bool = False
    """True where the file's reader refuses what is `unfit`."""

    @cached_property
    def spellings(self) -> tuple[Mapping[str, tuple[str, bool]], Mapping[str, str]]:
        """Keys by their long names, with whether the name turns them off, and keys by their short flags."""
        long: dict[str, tuple[str, bool]] = {}
        short: dict[str, str] = {}
        for key in self.sections[self.root].values():
            for other in (f"--{key.name}", *key.names):
                if other.startswith("--"):
                    long[other[2:]] = (key.name, False)
                else:
                    short[other[1:]] = key.name
            if self.engine == "vllm" and key.type == "bool":
                long.setdefault(f"no-{key.name}", (key.name, True))
        return long, short

    def section(self, key: Key, value: Any) -> str | None:
        """Return the name of the section that a value of `key` must fit; None for plain values and unknown tags."""
        if key.type in self.unions:
            return self.unions[key.type].section(value) if isinstance(value, dict) else None
        return key.type if key.type in self.sections else None

    def tags(self, section: str) -> set[str]:
        """Return the keys of a section that only say of which kind it is."""
        return {one.tag for one in self.unions.values() if section in (*one.kinds.values(), one.untagged)}

    def all_keys(self) -> Mapping[tuple[str, ...], Key]:
        """Return every key with its path; kinds of a union share their path, the first one counts."""
        return self._all_keys

    @cached_property
    def _all_keys(self) -> Mapping[tuple[str, ...], Key]:
        found: dict[tuple[str, ...], Key] = {}
        self._gather(self.root, (), found)
        return MappingProxyType(found)

    def _gather(self, section: str, above: tuple[str, ...], found: dict[tuple[str, ...], Key]) -> None:
        for name, key in self.sections[section].items():
            found.setdefault((*above, name), key)
            below = [key.type] if key.type in self.sections else []
            if key.type in self.unions:
                union = self.unions[key.type]
                found.setdefault((*above, name, union.tag), Key(union.tag, "str", values=tuple(union.kinds)))
                below = list(union.kinds.values())
            for inner in below:
                self._gather(inner, (*above, name), found)


def lines(engine: str) -> Mapping[str, VersionLine]:
    """Return all version lines of an engine by name, the oldest first."""
    return {name: _line(engine, name) for name in _names(engine)}


@cache
def _names(engine: str) -> tuple[str, ...]:
    return tuple(sorted((name for name in files(engine) if parse_version(name)), key=_order))


def _order(name: str) -> Version:
    return parse_version(name) or Version(FINAL, 0, 0, 0, 0)


def line_for(engine: str, version: str) -> tuple[VersionLine, bool]:
    """Return the line of a version, and whether it is known to be that very version's.

    A line's versions begin with its name, so only the nearest is read: reading all takes longer than a login.
    """
    names = _names(engine)
    schema = _line(engine, version if version in names else nearest_line(version, names))
    return schema, version in schema.versions


def next_line(schema: VersionLine) -> VersionLine | None:
    """Return the line after one; None for the newest."""
    later = [name for name in _names(schema.engine) if _order(name) > _order(schema.name)]
    return _line(schema.engine, later[0]) if later else None


def all_versions(engine: str) -> list[str]:
    """Return every version that a line was written for, in order."""
    return sorted((version for schema in lines(engine).values() for version in schema.versions), key=_order)


@cache
def _line(engine: str, name: str) -> VersionLine:
    return line_of(engine, name, merged_file(engine, name))


def line_of(engine: str, name: str, raw: Json) -> VersionLine:
    """Return a line from its data, whole. Raises KeyError or TypeError for malformed data."""
    root = next(iter(raw["sections"]))
    sections = {section: _section(raw["sections"], section) for section in raw["sections"]}
    return VersionLine(
        engine=engine,
        name=name,
        versions=tuple(str(version) for version in raw["versions"]),
        root=root,
        open=bool(raw.get("open", False)),
        decoding=str(raw.get("decoding", "attributes")),
        sections={**sections, root: _bounded(engine, name, sections[root])},
        unions={
            union: Union(
                str(part["tag"]),
                dict(part["kinds"]),
                frozenset(part.get("unsure", ())),
                part.get("otherwise"),
                part.get("untagged"),
            )
            for union, part in raw.get("unions", {}).items()
        },
        ignored={section: frozenset(keys) for section, keys in raw.get("ignored", {}).items()},
        lenient=frozenset(raw.get("lenient", ())),
        mappings=bool(raw.get("mappings", False)),
        negates=bool(raw.get("negates", False)),
        picky=bool(raw.get("picky", False)),
    )


def _bounded(engine: str, version: str, keys: Mapping[str, Key]) -> dict[str, Key]:
    """Return the options of the file itself with what the engine checks of their numbers later, at its start."""
    rows = {key: row for key, row in start_bounds(engine).items() if key in keys and is_of(row, version)}
    limits = {key: {bound: row[bound] for bound in BOUNDS if bound in row} for key, row in rows.items()}
    return {**keys, **{key: replace(keys[key], bounds={**keys[key].bounds, **limits[key]}) for key in rows}}


def start_bounds(engine: str) -> Mapping[str, Json]:
    """Return the numbers that an engine checks at its start, by option: bounds, versions, and the source."""
    return dict(table(f"{engine}/bounds")) if "bounds" in files(engine) else {}


def is_of(row: Json, version: str) -> bool:
    """Return True if a row of data counts at a version: from `since` on, and before `until`."""
    return not_before(version, row["since"]) and ("until" not in row or not not_before(version, row["until"]))


@cache
def merged_file(engine: str, name: str) -> Json:
    """Return a line's file over its base line's."""
    changes = _dated(table(f"{engine}/{name}"), name)
    if "base" not in changes:
        return changes
    base = merged_file(engine, changes["base"])
    removed, added = changes.get("remove", {}), changes.get("add", {})
    sections = {
        section: {
            **{key: spec for key, spec in keys.items() if key not in removed.get(section, ())},
            **added.get(section, {}),
        }
        for section, keys in {**{new: {} for new in added}, **base["sections"]}.items()
    }
    root = next(iter(base["sections"]))
    whole = {section: _sourced(changes, sections[section], name) for section in changes.get("seen", ())}
    return {**_inherited(base), **changes, "sections": {root: {}, **sections, **whole}}


def _inherited(base: Json) -> Json:
    """Return what a line takes over from its base, without where the base was read: the line was read elsewhere."""
    return {part: spec for part, spec in base.items() if part not in ("in", "seen")}


def _sourced(changes: Json, keys: Json, name: str) -> Json:
    """Return the keys of a class that was read whole, with the file that says them beside those that have none."""
    source = {"in": changes["in"], "of": name}
    return {key: spec if _has_source(spec) else {**spec, **source} for key, spec in keys.items()}


def _has_source(spec: Any) -> bool:
    return not isinstance(spec, dict) or "in" in spec or spec.get("unsure", False)


def _dated(changes: Json, name: str) -> Json:
    """Return a file whose keys, where they or the whole file name their source, have the version that says them."""
    if "in" in changes:
        added = {section: _sourced(changes, keys, name) for section, keys in changes["add"].items()}
        return {**changes, "add": added}
    dated: Json = {
        part: {
            section: {key: {**spec, "of": name} if "in" in spec else spec for key, spec in keys.items()}
            for section, keys in changes[part].items()
        }
        for part in ("sections", "add")
        if part in changes and name and any("in" in spec for keys in changes[part].values() for spec in _mappings(keys))
    }
    return {**changes, **dated}


def _mappings(keys: Json) -> list[Json]:
    return [spec for spec in keys.values() if isinstance(spec, dict)]


def _section(sections: Json, name: str) -> dict[str, Key]:
    raw = sections[name]
    keys = _section(sections, raw[EXTENDS]) if EXTENDS in raw else {}
    return keys | {key: _key(key, spec) for key, spec in raw.items() if key != EXTENDS}


def _key(name: str, raw: Json) -> Key:
    kind = str(raw["type"])
    return Key(
        name=name,
        type=re.sub(r"\?$", "", kind),
        nullable=kind.endswith("?") or kind == "any",
        default=raw.get("default", NO_DEFAULT),
        values=tuple(map(str, raw.get("values", ()))),
        more=bool(raw.get("more", False)),
        fold=str(raw.get("fold", "")),
        bounds={bound: raw[bound] for bound in BOUNDS if bound in raw},
        unsure=bool(raw.get("unsure", False)),
        given=bool(raw.get("given", False)),
        names=tuple(raw.get("names", ())),
        required=bool(raw.get("required", False)),
        unfit=bool(raw.get("unfit", False)),
        origin=f"{raw['in']} of {raw['of']}" if "in" in raw else "",
    )
