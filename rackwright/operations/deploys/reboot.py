"""Restart hosts in waves: each is drained, restarted, and has answered before the next one goes."""

from rackwright.operations.endpoints import switch_back
from rackwright.operations.maintenance import line_up_restart

line_up_restart(name="Hosts that are to restart are queued in inventory order")
switch_back(name="Each host was restarted, and its endpoints have answered")
