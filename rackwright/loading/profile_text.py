"""A profile as one file of settings: its files one after another, or merged where two have the same key. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from rackwright.loading.merge import merge
from rackwright.loading.profiles import layer_of
from rackwright.profiles.content import Files

SCHEMA = "# yaml-language-server:"


def one_file(files: Files) -> str:
    """Return the text of a file that says what all files of a profile say together, with their comments."""
    bodies = {name: _without_schema(text) for name, text in files.items()}
    layers = [layer_of(name, text) for name, text in files.items()]
    keys = [key for layer in layers for key in layer.values]
    if len(keys) == len(set(keys)):
        return "\n".join(bodies.values())
    heads = "".join(f"{row}\n" for text in bodies.values() for row in _head(text))
    values = dict(merge(layers).values)
    return f"{heads}\n{yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=1000)}"


def _without_schema(text: str) -> str:
    return "".join(row for row in text.splitlines(keepends=True) if not row.startswith(SCHEMA))


def _head(text: str) -> Iterator[str]:
    """Yield the comment that a file begins with."""
    for row in text.splitlines():
        if not row.startswith("#"):
            return
        yield row
