"""Base and draft models."""

from typing import Unpack

from pyinfra.api import deploy

from rackwright import operations
from rackwright.operations.arguments import ModelsArguments


@deploy("Models")
def models(**arguments: Unpack[ModelsArguments]) -> None:
    """Have every model of the endpoints on the host, complete and verified."""
    operations.models(**arguments)


if __name__ in operations.ALONE:
    models()
