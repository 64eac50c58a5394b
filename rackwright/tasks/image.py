"""The serving image."""

from rackwright import operations
from rackwright.adapter.operation import deploy


@deploy("Image")
def image() -> None:
    """Begin to pull the image of each endpoint, by digest; release() waits for it."""
    operations.image(wait=False)


if __name__ in operations.ALONE:
    image()
