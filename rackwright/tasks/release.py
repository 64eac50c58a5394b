"""Releases: the engine's YAML, the unit and their checks, in a folder named by content."""

from rackwright import operations
from rackwright.adapter.operation import deploy


@deploy("Release")
def release() -> None:
    """Write each endpoint's release; what serves is not touched."""
    operations.release()


if __name__ in operations.ALONE:
    release()
