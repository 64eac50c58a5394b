"""Take away from each host what Rackwright put there, or what steps that are not called left, and nothing else."""

from rackwright.operations import remove_left_behind, tear_down
from rackwright.record.handover import received

asked = received()
if asked.steps:
    name = "What steps that are no longer called have left is gone"
    remove_left_behind(name=name, steps=asked.steps, purge=asked.purge)
else:
    tear_down(name="What Rackwright put on the host is gone", purge=asked.purge)
