"""Endpoints: switch host by host behind the gate, and count one as up only when it has answered."""

from pyinfra.api import deploy

from rackwright.switching import switch_endpoints


@deploy("Endpoint")
def endpoint() -> None:
    """Switch in each host's own turn, ask, and roll back when the answer is wrong."""
    switch_endpoints()
