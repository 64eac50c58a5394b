"""The end of a deploy."""

from pyinfra.api import deploy

from rackwright.operations import converge


@deploy("Converged")
def converged() -> None:
    """Read every changed host once more: whatever is still pending is an error."""
    converge(name="Nothing is left to change")
