"""Errors of what is done on a host: each says which kind of thing went wrong there, and what to do next."""

from __future__ import annotations

from rackwright.messages import RackwrightError
from rackwright.record.cause import Cause, Reason


class StepFailedError(RackwrightError):
    """A step did not do what it should; the text says what and what to do next.

    `reasons`: what kinds of things went wrong, as far as is known where it is raised; by default its class's.
    """

    reasons: tuple[Reason, ...] = ()

    def __init__(self, text: str = "", reasons: tuple[Reason, ...] = (), *, code: str = "") -> None:
        super().__init__(text, code=code)
        self.reasons = reasons or type(self).reasons


class NotStartedError(StepFailedError):
    """A job was not started, so it has changed nothing."""

    reasons = (Reason(Cause.OTHER, "the switch was not started"),)


class LeaseLostError(NotStartedError):
    """Another run may write to the host now, so this one must not."""

    code = "RW0713"
    reasons = (Reason(Cause.LEASE, "the lease"),)


class TakenBackError(StepFailedError):
    """The step failed and the host has taken it back, so nothing of it stays there."""


class ConnectionLostError(StepFailedError):
    """The connection is gone; jobs on the host keep running."""

    code = "RW0712"
    reasons = (Reason(Cause.CONNECTION, "the connection"),)


class UnboundedError(ConnectionLostError):
    """A command took too long or printed too much, so its connection was closed."""
