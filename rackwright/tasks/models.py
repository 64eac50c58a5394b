"""Base and draft models."""

from typing import Unpack

from rackwright import operations
from rackwright.adapter.operation import deploy
from rackwright.operations.arguments import ModelsArguments


@deploy("Models")
def models(**arguments: Unpack[ModelsArguments]) -> None:
    """Begin to fetch every model of the endpoints, complete and verified; release() waits for them."""
    operations.models(wait=False, **arguments)


if __name__ in operations.ALONE:
    models()
