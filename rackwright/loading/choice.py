"""The hosts of an inventory that a command is for: the settings of the others need not be right. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch


@dataclass(frozen=True)
class Choice:
    """Hosts by the patterns of `--limit`, and by name. Default: all."""

    limit: Sequence[str] = ()
    names: Collection[str] | None = None
    """Of those, the ones of these names; None for all of them."""
    without: Collection[str] = ()
    """Of those, the ones that are left out: it is known that their settings are not valid."""
    profiles_as_shipped: bool = False
    """True to take the profiles that this version ships, whatever the lock file has."""

    def takes(self, name: str, groups: Collection[str]) -> bool:
        """Return True for a host of this name and these groups that the command is for."""
        limited = not self.limit or any(is_matched(name, groups, pattern) for pattern in self.limit)
        return limited and (self.names is None or name in self.names) and name not in self.without


def is_matched(name: str, groups: Collection[str], pattern: str) -> bool:
    """Return True for a host whose group a pattern is, or whose name it matches, as pyinfra's `--limit` has it."""
    return pattern in groups or fnmatch(name, pattern)


EVERYBODY = Choice()
