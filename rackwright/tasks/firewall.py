"""Firewall: who may reach the endpoints' ports, confirmed over a new connection."""

from typing import Unpack

from rackwright import operations
from rackwright.adapter.operation import deploy
from rackwright.operations.arguments import FirewallArguments


@deploy("Firewall")
def firewall(**arguments: Unpack[FirewallArguments]) -> None:
    """Set the rules, IPv4 and IPv6; the host restores the previous ones when login fails afterwards."""
    operations.firewall(**arguments)


if __name__ in operations.ALONE:
    firewall()
