"""The hosts that serve one endpoint together, in the order of their ranks, and the place of one host among them."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_RANK = 0
"""The head's: it answers, and it alone decides what the group serves."""


@dataclass(frozen=True)
class GroupMember:
    """One host of a group: its name in the inventory, and the address by which the others reach it."""

    host: str
    address: str


@dataclass(frozen=True)
class Group:
    """An endpoint of several hosts, as one of them sees it."""

    endpoint: str
    members: tuple[GroupMember, ...]
    rank: int

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the members, the head first."""
        return tuple(member.host for member in self.members)

    @property
    def head(self) -> GroupMember:
        """The member that answers."""
        return self.members[FIRST_RANK]

    @property
    def own(self) -> GroupMember:
        """The member that this host is."""
        return self.members[self.rank]

    @property
    def is_head(self) -> bool:
        """Whether this host is the head."""
        return self.rank == FIRST_RANK
