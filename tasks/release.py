"""Releases: the engine's YAML, the unit and their checks, in a folder named by content."""

from pyinfra.api import deploy

from rackwright.operations import settle


@deploy("Release")
def release() -> None:
    """Write each endpoint's release; what serves is not touched."""
    settle(name="The wanted release of each endpoint lies on the host", concern="release")
