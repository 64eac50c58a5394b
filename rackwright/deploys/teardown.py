"""Take away from each host what Rackwright put there, from its ownership record, and nothing else."""

import os

from rackwright.operations import tear_down

tear_down(
    name="What Rackwright put on the host is gone",
    purge=os.environ.get("RACKWRIGHT_PURGE") == "yes",
)
