"""Hosts that serve one endpoint together."""

from rackwright.settings.group.members import FIRST_RANK, Group, GroupMember

__all__ = ["FIRST_RANK", "Group", "GroupMember"]
