"""Tables of the flags that stand-ins of other versions have, from the engines' data of those versions' own sources."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rackwright_engines.options.schema import NO_DEFAULT, Key, VersionLine, line_for

BESIDE = "FLASHINFER_MLA_SPARSE"
"""Part of every list of vLLM's backends of attention to which an image that others build adds its own."""


@dataclass(frozen=True)
class StandIn:
    """The version of an engine that an image poses as, and a backend of attention that it has in addition."""

    engine: str
    version: str
    backend: str = ""

    @property
    def name(self) -> str:
        """Return the version as the image says it."""
        return f"{self.version}+{self.backend.split('_')[0].lower()}" if self.backend else self.version


@cache
def table_of(one: StandIn) -> str:
    """Return the table as JSON, the same bytes for the same data. Raises LookupError for a version without data."""
    schema, exact = line_for(one.engine, one.version)
    if not exact:
        raise LookupError(f"no data of {one.engine} {one.version}")
    root = schema.sections[schema.root]
    sections = {name: _section(schema, name, one.backend) for name in schema.sections if name != schema.root}
    options = [_option(key, one.backend) for key in root.values() if not key.given]
    return json.dumps({"options": options, "sections": sections}, sort_keys=True)


def write_tables(folder: Path, standins: list[StandIn]) -> None:
    """Write the tables of some versions of one engine into a folder."""
    folder.mkdir()
    for one in standins:
        (folder / f"{one.name}.json").write_text(table_of(one), encoding="utf-8")


def _option(key: Key, backend: str) -> dict[str, Any]:
    names = [f"--{key.name}", *key.names]
    value = _value(key, backend)
    return {
        "names": names,
        "frontend": "entrypoints/" in key.origin,
        "default": _default(key, value["choices"]),
        **value,
    }


def _section(schema: VersionLine, name: str, backend: str) -> dict[str, Any]:
    keys = {key.name: _value(key, backend) for key in schema.sections[name].values()}
    return {"lenient": name in schema.lenient, "keys": keys}


def _value(key: Key, backend: str) -> dict[str, Any]:
    choices = list(key.values) if key.type == "str" and not key.more else []
    if backend and BESIDE in choices:
        choices.append(backend)
    return {"type": key.type, "choices": choices, "fold": key.fold}


def _default(key: Key, choices: list[str]) -> Any:
    if key.default is NO_DEFAULT or not isinstance(key.default, str | int | float):
        return None
    return str(key.default) if choices else key.default
