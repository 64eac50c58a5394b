"""Images and models that no retained release needs."""

from pyinfra.api import deploy

from rackwright import operations


@deploy("Retention")
def retention() -> None:
    """Remove Rackwright's images and models that no retained release names."""
    operations.retention()


if __name__ in operations.ALONE:
    retention()
