"""The end of a deploy."""

from rackwright import operations
from rackwright.adapter.operation import deploy


@deploy("Converged")
def converged() -> None:
    """Read every changed host once more: whatever is still pending is an error."""
    operations.converge(name="Nothing is left to change")


if __name__ in operations.ALONE:
    operations.refuse_alone("converged", "rackwright drift INVENTORY")
