"""Close the direct ports: with `gateway.close_direct` the endpoints' ports let in the gateways alone."""

from rackwright import operations
from rackwright.adapter.operation import deploy


@deploy("Close the direct ports")
def close_direct() -> None:
    """See that the gateways reach the endpoints, then close the endpoints' ports to others by the firewall."""
    operations.close_direct()


if __name__ in operations.ALONE:
    close_direct()
