"""What no kept release needs any more."""

from pyinfra.api import deploy

from rackwright import operations


@deploy("Retention")
def retention() -> None:
    """Remove images and models of ours that no kept release names."""
    operations.retention()


if __name__ in operations.ALONE:
    retention()
