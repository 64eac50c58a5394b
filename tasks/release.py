"""Releases: the engine's YAML, the unit and their checks, in a folder named by content."""

from pyinfra.api import deploy

from rackwright import operations


@deploy("Release")
def release() -> None:
    """Write each endpoint's release; what serves is not touched."""
    operations.release()


if __name__ in operations.ALONE:
    release()
