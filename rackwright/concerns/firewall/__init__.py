"""Access to the endpoints' ports."""

from rackwright.concerns.firewall.changes import are_as_left, remove_script
from rackwright.concerns.firewall.concern import (
    CLOSE_DIRECT,
    FIREWALL,
    FIREWALL_AS_SERVED,
    closing_changes,
    is_ours,
    listens_elsewhere,
    new_addresses,
    opening_changes,
    reopening_changes,
)
from rackwright.concerns.firewall.place import ListenAddress
from rackwright.concerns.firewall.seen import SeenFirewall

__all__ = (
    "CLOSE_DIRECT",
    "FIREWALL",
    "FIREWALL_AS_SERVED",
    "ListenAddress",
    "SeenFirewall",
    "are_as_left",
    "closing_changes",
    "is_ours",
    "listens_elsewhere",
    "new_addresses",
    "opening_changes",
    "remove_script",
    "reopening_changes",
)
