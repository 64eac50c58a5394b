"""Images and models that no retained release needs."""

from rackwright import operations
from rackwright.adapter.operation import deploy


@deploy("Retention")
def retention() -> None:
    """Remove Rackwright's images and models that no retained release names."""
    operations.retention()


if __name__ in operations.ALONE:
    retention()
