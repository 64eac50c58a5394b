"""Docker Engine and NVIDIA's container toolkit: installed where missing, configured by merging.

dockerd is never restarted here while an endpoint serves.
"""

from rackwright.concerns.docker.as_run import lost_programs, not_taken, rejected_clients, waits_at_start
from rackwright.concerns.docker.concern import DOCKER, changes
from rackwright.concerns.docker.files import AUTHORITY, DROPIN
from rackwright.concerns.docker.holds import existing
from rackwright.concerns.docker.install import install_plan, was_cut
from rackwright.concerns.docker.seen import Package, SeenDocker, parse
from rackwright.concerns.docker.wanted import WantedDocker, wanted

__all__ = [
    "AUTHORITY",
    "DOCKER",
    "DROPIN",
    "Package",
    "SeenDocker",
    "WantedDocker",
    "changes",
    "existing",
    "install_plan",
    "lost_programs",
    "not_taken",
    "parse",
    "rejected_clients",
    "waits_at_start",
    "wanted",
    "was_cut",
]
