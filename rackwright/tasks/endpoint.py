"""Endpoints: switch host by host behind the gate, and count one as up only when it has answered."""

from typing import Unpack

from rackwright import operations
from rackwright.adapter.operation import deploy
from rackwright.operations.arguments import EndpointArguments


@deploy("Endpoint")
def endpoint(**arguments: Unpack[EndpointArguments]) -> None:
    """Switch in each host's own turn, ask, and roll back when the answer is wrong."""
    operations.endpoint(**arguments)


if __name__ in operations.ALONE:
    endpoint()
