"""The image has the last word on its options."""

from rackwright import operations
from rackwright.adapter.operation import deploy


@deploy("Options")
def options() -> None:
    """Build each endpoint's options inside its own image; what is refused is never switched."""
    operations.options()


if __name__ in operations.ALONE:
    options()
