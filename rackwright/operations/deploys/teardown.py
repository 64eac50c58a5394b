"""Take away from each host what Rackwright put there, or what steps that are not called left, and nothing else."""

from rackwright.operations import remove_left_behind, tear_down
from rackwright.record.handover import received

handover = received()
if handover.steps:
    name = "What steps that are no longer called have left is gone"
    remove_left_behind(name=name, steps=handover.steps, purge=handover.purge)
else:
    tear_down(name="What Rackwright put on the host is gone", purge=handover.purge)
