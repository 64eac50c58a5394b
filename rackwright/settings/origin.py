"""The origin of a value: file and line, kept for every key of the merged settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rackwright_engines.key_path import KeyPath


@dataclass(frozen=True, order=True)
class Origin:
    """A file as the user knows it (relative to the site) and a line; line 0 means the file as a whole."""

    file: str
    line_number: int = 0
    written: str = field(default="", compare=False)
    """The key as it was written, where it is Ansible's name for ours."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line_number}" if self.line_number else self.file


Origins = dict[KeyPath, Origin]


def origin_of(origins: Mapping[KeyPath, Origin], path: KeyPath) -> Origin | None:
    """Return the origin of the value at `path`, or of the nearest key above it; None when nothing is known of it."""
    for length in range(len(path), 0, -1):
        if path[:length] in origins:
            return origins[path[:length]]
    return None
