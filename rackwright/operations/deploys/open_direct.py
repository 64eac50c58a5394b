"""Open the endpoints' ports to direct clients, before the last gateway goes."""

from rackwright.operations.closing import open_direct_ports

open_direct_ports(name="The endpoints' ports let in direct clients again")
