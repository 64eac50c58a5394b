"""What no kept release needs any more."""

from pyinfra.api import deploy

from rackwright.operations import settle


@deploy("Retention")
def retention() -> None:
    """Remove images and models of ours that no kept release names."""
    settle(name="Images and models that no kept release names are gone", concern="retention")
