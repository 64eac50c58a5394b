"""The hosts that serve one endpoint together, in the order of their ranks, and the place of one host among them."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_RANK = 0
"""The head's: it answers, and it alone decides what the group serves."""

DAEMON_PORTS = 2
"""Ports of mpirun's daemon on a host."""
RANK_PORTS = 128 + DAEMON_PORTS
"""Ports for what mpirun starts on a host: its daemon's, and one for each rank."""


def rank_ports(group_port: int) -> tuple[int, int]:
    """Return the first and last of these ports: they lie behind `group_port` and the lifelines' one."""
    return group_port + 2, group_port + 1 + RANK_PORTS


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
    ports: tuple[int, int] | None = None
    """First and last port that the engine takes on all addresses of a member; None when its port is configured."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the members, the head first."""
        return tuple(member.host for member in self.members)

    @property
    def head(self) -> GroupMember:
        """The member that answers."""
        return self.members[FIRST_RANK]

    @property
    def member(self) -> GroupMember:
        """The member that this host is."""
        return self.members[self.rank]

    @property
    def is_head(self) -> bool:
        """True if this host is the head."""
        return self.rank == FIRST_RANK
