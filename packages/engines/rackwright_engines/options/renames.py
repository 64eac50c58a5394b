"""The new or old name of a key that a version does not know: renames as data, read both ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rackwright_engines.data import files, table
from rackwright_engines.key_path import KeyPath, dotted
from rackwright_engines.move import Move
from rackwright_engines.options.schema import VersionLine, lines
from rackwright_engines.version import not_before

ANY = object()
"""Stands for whatever value the user wrote."""


@dataclass(frozen=True)
class Hint:
    """This version's form of a key: for the message, and as an edit where it can be made safely."""

    text: str
    right: Move | None = None
    link: str = ""


@dataclass(frozen=True)
class Form:
    """One way to say something, from a version on. Without a key: by leaving it out."""

    since: str
    key: tuple[str, ...] | None
    value: Any


@dataclass(frozen=True)
class Meaning:
    """Something that versions say in different ways."""

    meaning: str
    forms: tuple[Form, ...]
    note: str
    link: str

    def form_of(self, path: KeyPath, value: Any) -> Form | None:
        """Return the form that a user's key and value are."""
        return next((form for form in self.forms if form.key == path and form.value in (ANY, value)), None)

    def at(self, version: str) -> Form | None:
        """Return the form that holds in a version; None when the version has no such form."""
        forms = [form for form in self.forms if not_before(version, form.since)]
        return forms[-1] if forms else None


def meanings(engine: str) -> list[Meaning]:
    """Return all renames of an engine."""
    raw = table(f"{engine}/moves") if "moves" in files(engine) else []
    return [
        Meaning(
            row["meaning"],
            tuple(
                Form(form["since"], tuple(form["key"].split(".")) if "key" in form else None, form.get("value", ANY))
                for form in row["forms"]
            ),
            row.get("note", ""),
            row.get("link", ""),
        )
        for row in raw
    ]


def right_place(schema: VersionLine, path: KeyPath, value: Any, options: Mapping[str, Any]) -> Hint | None:
    """Return the right key and value for one that `schema` does not take; None when the data has none."""
    return (
        renamed(schema, path, value)
        or _misplaced(schema, path, value, options)
        or _of_another_kind(schema, path)
        or _elsewhen(schema, path)
    )


def renamed(schema: VersionLine, path: KeyPath, value: Any) -> Hint | None:
    """Return how `schema` says what this key and value say elsewhere; None when no rename is known."""
    for meaning in meanings(schema.engine):
        form = meaning.form_of(path, value)
        if form:
            return _hint(meaning, form, meaning.at(schema.name), value)
    return None


def _hint(meaning: Meaning, form: Form, now: Form | None, value: Any) -> Hint:
    if now is None:
        return Hint(f": it is known from {form.since} on", link=meaning.link)
    if now.key is None:
        note = meaning.note or "it is the default there"
        return Hint(f": {meaning.meaning} needs no key there, {note}", Move(None), meaning.link)
    new_value = value if now.value is ANY else now.value
    if meaning.note:
        return Hint(f": {meaning.meaning} is {dotted(now.key)} there; {meaning.note}", link=meaning.link)
    return Hint(f": {meaning.meaning} is said otherwise there", Move(now.key, new_value), meaning.link)


def _misplaced(schema: VersionLine, path: KeyPath, value: Any, options: Mapping[str, Any]) -> Hint | None:
    """Return a hint for a key at the wrong depth: by the command line's name, or in text that lost its indentation."""
    raw = table(f"{schema.engine}/misplaced") if "misplaced" in files(schema.engine) else {}
    if dotted(path) in raw:
        return Hint(": it has another name in the YAML", _free(tuple(raw[dotted(path)].split(".")), value, options))
    name = str(path[-1])
    places = [target for target in schema.all_keys() if target[-1] == name and target != path]
    if len(path) > 1 and (name,) in places:
        return Hint(": it belongs at the top level", _free((name,), value, options))
    if len(path) == 1 and len(places) == 1:
        return Hint(f": it belongs in {dotted(places[0][:-1])}", _free(places[0], value, options))
    if len(path) == 1 and places:
        sections = " or ".join(dict.fromkeys(dotted(target[:-1]) for target in places))
        return Hint(f": it belongs in {sections}; was the indentation lost?")
    return None


def _free(target: tuple[str, ...], value: Any, options: Mapping[str, Any]) -> Move | None:
    """Return an edit to `target`, unless something is set there already."""
    here: Any = options
    for part in target:
        if not isinstance(here, Mapping):
            return None
        if part not in here:
            return Move(target, value)
        here = here[part]
    return None


def _of_another_kind(schema: VersionLine, path: KeyPath) -> Hint | None:
    """Return a hint for a key that this version has where a tag, as `mode` or `decoding_type`, is another one."""
    if path not in schema.all_keys():
        return None
    for union in schema.unions.values():
        kinds = [kind for kind, section in union.kinds.items() if path[-1] in schema.sections[section]]
        if kinds:
            return Hint(f" with this {union.tag}; {' and '.join(kinds)} {'has' if len(kinds) == 1 else 'have'} it")
    return None


def _elsewhen(schema: VersionLine, path: KeyPath) -> Hint | None:
    """Return a hint for a key that other versions have."""
    having = [other for other in lines(schema.engine).values() if path in other.all_keys()]
    if any(schema.name in other.versions for other in having):
        return Hint(f": other images of {schema.name} have it, this one does not")
    names = [other.name for other in having]
    later = [name for name in names if not not_before(schema.name, name)]
    if later:
        return Hint(f": it is known from {later[0]} on")
    return Hint(f": it is gone since {_gone_since(schema, path)}") if names else None


def _gone_since(schema: VersionLine, path: KeyPath) -> str:
    every = list(lines(schema.engine).values())
    last = max(index for index, other in enumerate(every) if path in other.all_keys())
    return every[min(last + 1, len(every) - 1)].name
