"""The image has the last word on its options."""

from pyinfra.api import deploy

from rackwright.operations import settle


@deploy("Options")
def options() -> None:
    """Build each endpoint's options inside its own image; what is refused is never switched."""
    settle(name="The image of each endpoint accepts its options", concern="options")
