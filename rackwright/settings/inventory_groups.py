"""Groups of an inventory, and their order of precedence as Ansible has it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rackwright.messages import SettingsError

ALL = "all"
UNGROUPED = "ungrouped"
PRIORITY = "ansible_group_priority"


@dataclass
class InventoryGroup:
    """One group: its own hosts, its child groups, and the values that the inventory itself gives it."""

    name: str
    hosts: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def priority(self) -> int:
        """Ansible's tie-breaker among groups of the same depth: the higher one wins; 1 by default."""
        value = self.values.get(PRIORITY, 1)
        try:
            return int(value)
        except (TypeError, ValueError):
            raise SettingsError(
                f"group {self.name}: {PRIORITY} must be a whole number, not {value!r}", code="RW0103"
            ) from None


class InventoryGroups:
    """All groups of an inventory. Raises SettingsError when a group contains itself."""

    def __init__(self, groups: Iterable[InventoryGroup]) -> None:
        self._groups = {group.name: group for group in groups}
        for group in list(self._groups.values()):
            for child in group.children:
                self._groups.setdefault(child, InventoryGroup(child))
        self._parents = self._find_parents()
        self._members = {name: set(group.hosts) for name, group in self._groups.items()}
        self._of: dict[str, list[str]] = {}
        self._depths = {name: self._depth(name, ()) for name in self._groups}

    def values(self, name: str) -> dict[str, Any]:
        """Return what the inventory itself says of a group."""
        return self._groups[name].values if name in self._groups else {}

    @property
    def names(self) -> list[str]:
        """Names of all groups, `all` among them, in the inventory's order."""
        return list(dict.fromkeys([ALL, *self._groups]))

    @property
    def hosts(self) -> list[str]:
        """All hosts, each once, in the inventory's order."""
        return list(dict.fromkeys(host for group in self._groups.values() for host in group.hosts))

    def of(self, host: str) -> list[str]:
        """Return groups of a host without `all`, its groups' parents included, the weakest first."""
        if host not in self._of:
            self._of[host] = self._find_groups(host)
        return self._of[host]

    def _find_groups(self, host: str) -> list[str]:
        found: set[str] = set()
        todo = [name for name, members in self._members.items() if host in members]
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo.extend(self._parents[name])
        return sorted(found - {ALL}, key=self._strength)

    def members(self, name: str) -> list[str]:
        """Return the hosts of a group and of all groups below it, in the inventory's order."""
        return [host for host in self.hosts if name == ALL or name in self.of(host)]

    def _strength(self, name: str) -> tuple[int, int, str]:
        return self._depths[name], self._groups[name].priority, name

    def _find_parents(self) -> dict[str, list[str]]:
        parents: dict[str, list[str]] = {name: [] for name in self._groups}
        for group in self._groups.values():
            for child in group.children:
                parents[child].append(group.name)
        return parents

    def _depth(self, name: str, below: tuple[str, ...]) -> int:
        if name in below:
            raise SettingsError(
                f"the groups {' > '.join([*below[::-1], name])} contain each other; take one `children` entry out",
                code="RW0102",
            )
        if name == ALL:
            return 0
        return 1 + max((self._depth(parent, (*below, name)) for parent in self._parents[name]), default=0)
