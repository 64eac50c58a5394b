"""The serving image."""

from pyinfra.api import deploy

from rackwright import operations


@deploy("Image")
def image() -> None:
    """Have the image of each endpoint on the host, by digest."""
    operations.image()


if __name__ in operations.ALONE:
    image()
