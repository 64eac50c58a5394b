"""dockerd under endpoints that serve."""

from rackwright import operations
from rackwright.adapter.operation import deploy
from rackwright.operations.endpoints import restart_dockerd_in_turn


@deploy("dockerd")
def dockerd() -> None:
    """Let a change of dockerd's configuration restart it, and its endpoints with it, in each host's own turn."""
    restart_dockerd_in_turn()


if __name__ in operations.ALONE:
    operations.refuse_alone("dockerd", "pyinfra INVENTORY deploy.py")
