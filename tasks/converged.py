"""The end of a deploy."""

from pyinfra.api import deploy

from rackwright import operations


@deploy("Converged")
def converged() -> None:
    """Read every changed host once more: whatever is still pending is an error."""
    operations.converge(name="Nothing is left to change")


if __name__ in operations.ALONE:
    operations.refuse_alone("converged", "rackwright drift INVENTORY")
