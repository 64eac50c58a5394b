"""Look after the caches of hosts: hash what is there again, fetch what is broken, or remove what is spare."""

from rackwright.operations.caches import prune_caches, read_caches, repair_caches, verify_caches
from rackwright.record.handover import received
from rackwright.record.record import CACHE_PRUNE, CACHE_REPAIR, CACHE_VERIFY

purpose = received().purpose
if purpose == CACHE_VERIFY:
    verify_caches(name="Every file of models and encodings is hashed again")
elif purpose == CACHE_REPAIR:
    read_caches(name="Each host is read")
    repair_caches(name="Files that are not as verified are fetched again")
elif purpose == CACHE_PRUNE:
    prune_caches(name="What no endpoint and no kept release needs is gone")
