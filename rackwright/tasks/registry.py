"""The login at the image's registry."""

from typing import Unpack

from rackwright import operations
from rackwright.adapter.operation import deploy
from rackwright.operations.arguments import RegistryArguments


@deploy("Registry")
def registry(**arguments: Unpack[RegistryArguments]) -> None:
    """Keep the registry's login for root only, or none at rest, as the settings say."""
    operations.registry(**arguments)


if __name__ in operations.ALONE:
    registry()
