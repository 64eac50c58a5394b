"""Watch: the host looks at its endpoints between two deploys."""

from typing import Unpack

from rackwright import operations
from rackwright.adapter.operation import deploy
from rackwright.operations.arguments import WatchArguments


@deploy("Watch")
def watch(**arguments: Unpack[WatchArguments]) -> None:
    """Report hung and dead engines, or restart them, as `watch.act` says."""
    operations.watch(**arguments)


if __name__ in operations.ALONE:
    watch()
