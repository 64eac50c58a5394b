"""Endpoints: switch host by host behind the gate, and count one as up only when it has answered."""

from pyinfra.api import deploy

from rackwright.operations import converged, settle
from rackwright.switching import line_up, switch


@deploy("Endpoint")
def endpoint() -> None:
    """Switch, ask, and go back when the answer is wrong; then read every changed host once more."""
    line_up(name="Hosts that must switch stand in inventory order")
    switch(name="Each endpoint runs its wanted release and has answered")
    settle(name="Images and models that no kept release names are gone", concern="retention")
    converged(name="Nothing is left to change")
