"""Is this host able to run its endpoints?"""

from __future__ import annotations

from rackwright import operations
from rackwright.adapter.operation import deploy


@deploy("Preflight")
def preflight() -> None:
    """Check the host before anything is written to it; a stopping row ends it here."""
    operations.preflight()


if __name__ in operations.ALONE:
    preflight()
