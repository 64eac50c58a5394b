"""The hosts of a run that are asked for quality: the first of each shape, until one of it has been proven."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Canaries:
    """Names of the hosts that are canaries in their turn."""

    names: set[str] = field(default_factory=set)
