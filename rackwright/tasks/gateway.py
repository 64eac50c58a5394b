"""Gateway: HAProxy in front of the endpoints, on the hosts of the group gateway."""

from rackwright import operations
from rackwright.adapter.operation import deploy


@deploy("Gateway")
def gateway() -> None:
    """Write HAProxy's configuration, check it, and confirm it over a new connection."""
    operations.gateway()


if __name__ in operations.ALONE:
    gateway()
