"""Kinds of failures on a host. The code that knows it says it; it is never read out of a text. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """The kinds. Only CHECK can ever be the release's fault (DECISIONS 52)."""

    CHECK = "check"
    """The release did not start, or a row of its proof was refused."""
    CONNECTION = "connection"
    GPU = "gpu"
    DISK = "disk"
    DOCKER = "docker"
    """dockerd does not answer, cannot start a container, or what a start needs is not on the host."""
    OTHER_PROCESS = "stranger"
    """Another process of the host has the endpoint's port."""
    HOOK = "hook"
    """One of the site's hooks failed."""
    LEASE = "lease"
    """Another run may write to the host now."""
    COMMIT = "commit"
    """It answers, and is not committed."""
    OTHER = "other"

    @property
    def is_hosts(self) -> bool:
        """True for what is wrong with the host itself."""
        return self in (Cause.CONNECTION, Cause.GPU, Cause.DISK, Cause.DOCKER, Cause.OTHER_PROCESS)


@dataclass(frozen=True, order=True)
class Reason:
    """One thing that went wrong: its kind, and its name as people read it, for example the refused row's."""

    cause: Cause
    check: str


READY_HOOK = Reason(Cause.HOOK, "the ready hook")
"""Alone, it leaves the new release proven and committed: clients are not let in again."""
