"""The image has the last word on its options."""

from pyinfra.api import deploy

from rackwright import operations


@deploy("Options")
def options() -> None:
    """Build each endpoint's options inside its own image; what is refused is never switched."""
    operations.options()


if __name__ in operations.ALONE:
    options()
