"""Paths in an endpoint's options, arguments and environment that are to be read inside the container."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rackwright_engines.data import table
from rackwright_engines.key_path import KeyPath
from rackwright_engines.options.commandline import parsed, spelled
from rackwright_engines.options.schema import VersionLine, line_for
from rackwright_engines.serving import Serving
from rackwright_engines.version import bare

FOLDERS = ("path", "lora_path", "lora_dir")
"""Keys of an adapter's folder, by any engine."""


@dataclass(frozen=True)
class Named:
    """A path or a name, where it stands, and what it may be (`data/paths.yaml`)."""

    path: KeyPath
    value: str
    takes: str
    role: str = ""
    """Its role: model, draft, encodings, or nothing of these."""
    words: tuple[str, ...] = ()
    """Values that name nothing to be read."""
    inline: bool = False
    """True if the engine takes a template's own text."""


def named_paths(endpoint: Serving) -> Iterator[Named]:
    """Return all of them, in the order of the settings."""
    readers = table("paths")
    engine: Mapping[str, Any] = readers[endpoint.engine_kind]
    for path, key, value in [*_options(endpoint), *_arguments(endpoint)]:
        for below, name, inner in _leaves(engine["options"], key, value):
            yield from _named((*path, *below), inner, engine["options"][name], bool(engine.get("inline")))
    for name, row in readers["environment"].items():
        if name in endpoint.environment:
            yield from _named(("environment", name), endpoint.environment[name], row, inline=False)


def _options(endpoint: Serving) -> Iterator[tuple[KeyPath, str, Any]]:
    """Yield the engine's YAML: path in the settings, the engine's own key, value."""
    for name, value in endpoint.engine.items():
        yield ("engine", name), _key(endpoint, str(name)), value


def _arguments(endpoint: Serving) -> Iterator[tuple[KeyPath, str, Any]]:
    """Yield the same of `--key value`, `--key=value`, and of a list behind a key."""
    words = endpoint.arguments
    for at, argument in enumerate(words):
        if not argument.startswith("-"):
            continue
        name, is_, value = argument.partition("=")
        behind = [value] if is_ else []
        for follows in () if is_ else words[at + 1 :]:
            if follows.startswith("-"):
                break
            behind.append(follows)
        yield ("arguments", at), _key(endpoint, name), behind[0] if len(behind) == 1 else behind


def _key(endpoint: Serving, name: str) -> str:
    """Return the engine's own key that a name means, whatever alias or beginning of it was written."""
    if endpoint.engine_kind == "tensorrt-llm":
        return name.lstrip("-").replace("-", "_")
    meant = spelled(_line(endpoint), name)
    if meant is None:
        return name.lstrip("-").replace("_", "-")
    return ".".join((meant.key.name, *meant.below))


def _line(endpoint: Serving) -> VersionLine:
    return line_for(endpoint.engine_kind, bare(endpoint.version))[0]


def _leaves(rows: Mapping[str, Any], key: str, value: Any) -> Iterator[tuple[KeyPath, str, Any]]:
    """Yield the values that rows are about, at a key or below it, also within JSON text."""
    if key in rows:
        yield (), key, value
        return
    if not any(row.startswith(f"{key}.") for row in rows):
        return
    inner = parsed(value)
    for name, below in inner.items() if isinstance(inner, Mapping) else ():
        for path, row, found in _leaves(rows, f"{key}.{name}", below):
            yield (name, *path), row, found


def _named(path: KeyPath, value: Any, row: Mapping[str, Any], inline: bool) -> Iterator[Named]:
    values = _adapters(value) if row["takes"] == "loras" else [value]
    takes = "model" if row["takes"] == "loras" else str(row["takes"])
    for one in values:
        if isinstance(one, str):
            words = tuple(row.get("words", ()))
            yield Named(path, one.strip(), takes, str(row.get("for", "")), words, inline)


def _adapters(value: Any) -> Iterator[str]:
    """Yield the folders of adapters: PATH, NAME=PATH, JSON text, mappings, and lists of these."""
    inner = parsed(value) if isinstance(value, str) else value
    if isinstance(inner, list | tuple):
        for one in inner:
            yield from _adapters(one)
    elif isinstance(inner, Mapping):
        folder = next((inner[name] for name in FOLDERS if name in inner), None)
        for one in inner.values() if folder is None else [folder]:
            yield from _adapters(one)
    elif isinstance(value, str):
        name, is_, folder = value.partition("=")
        yield folder if is_ and "/" not in name else value
