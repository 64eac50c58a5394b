"""Take away from each host what Rackwright put there, or what steps that are not called left, and nothing else."""

import json
import os

from rackwright.operations import remove_left_behind, tear_down

purge = os.environ.get("RACKWRIGHT_PURGE") == "yes"
if steps := json.loads(os.environ.get("RACKWRIGHT_STEPS", "null")):
    remove_left_behind(name="What steps that are no longer called have left is gone", steps=steps, purge=purge)
else:
    tear_down(name="What Rackwright put on the host is gone", purge=purge)
