"""Switch NVIDIA's driver in waves: each host is drained, restarted, and has answered before the next one goes."""

from rackwright.operations.drivers import line_up_drivers, stage_drivers
from rackwright.operations.endpoints import switch_back

stage_drivers(name="The packages of the wanted NVIDIA driver are on the host")
line_up_drivers(name="Hosts whose driver is switched are queued in inventory order")
switch_back(name="Each host runs its driver, and its endpoints have answered")
