"""Docker Engine and NVIDIA's container toolkit."""

from typing import Unpack

from rackwright import operations
from rackwright.adapter.operation import deploy
from rackwright.operations.arguments import DockerArguments


@deploy("Docker")
def docker(**arguments: Unpack[DockerArguments]) -> None:
    """Install what is missing, merge dockerd's configuration, let the named users in."""
    operations.docker(**arguments)


if __name__ in operations.ALONE:
    docker()
