"""Errors of asking a registry or a hub."""

from rackwright.messages import RackwrightError


class SourceError(RackwrightError):
    """A registry or hub could not be asked, or said no."""


class NotThereError(SourceError):
    """The server has no such thing, or shows it only with another key."""


class UnreachableError(SourceError):
    """There was no answer at all."""
