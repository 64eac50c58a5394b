"""Firewall: who may reach the endpoints' ports, confirmed over a new connection."""

from pyinfra.api import deploy

from rackwright.operations import settle


@deploy("Firewall")
def firewall() -> None:
    """Set the rules, IPv4 and IPv6; the host takes them back by itself when nobody can log in afterwards."""
    settle(name="Containers and the allowed networks reach the endpoints' ports", concern="firewall")
