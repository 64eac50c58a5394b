"""Access to the endpoints' ports."""

from rackwright.concerns.firewall.changes import are_as_left, remove_script
from rackwright.concerns.firewall.concern import (
    FIREWALL,
    FIREWALL_AS_SERVED,
    is_ours,
    listens_elsewhere,
    new_addresses,
    opening_changes,
)
from rackwright.concerns.firewall.place import ListenAddress
from rackwright.concerns.firewall.seen import SeenFirewall

__all__ = (
    "FIREWALL",
    "FIREWALL_AS_SERVED",
    "ListenAddress",
    "SeenFirewall",
    "are_as_left",
    "is_ours",
    "listens_elsewhere",
    "new_addresses",
    "opening_changes",
    "remove_script",
)
