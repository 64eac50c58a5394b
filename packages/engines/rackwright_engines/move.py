"""The fix of a wrong key: where it goes, and with which value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rackwright_engines.key_path import KeyPath, dotted


@dataclass(frozen=True)
class Move:
    """The key goes to `path` (None: it goes away) with `value`."""

    path: KeyPath | None
    value: Any = None

    def __str__(self) -> str:
        return "leave the key out" if self.path is None else f"write `{dotted(self.path)}: {as_yaml(self.value)}`"


def as_yaml(value: Any) -> str:
    """Return a scalar or a list of numbers as YAML has it."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
