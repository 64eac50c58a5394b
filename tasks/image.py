"""The serving image."""

from pyinfra import host
from pyinfra.api import deploy

from rackwright.inventory import settings_of
from rackwright.operations import settle


@deploy("Image")
def image() -> None:
    """Have the image of each endpoint on the host, by digest."""
    settle(
        name="Pull the image of each endpoint",
        concern="image",
        _parallel=settings_of(host).downloads.parallel,
    )
