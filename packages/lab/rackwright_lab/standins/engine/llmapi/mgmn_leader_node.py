"""`python3 -m tensorrt_llm.llmapi.mgmn_leader_node`: the first rank, which hands the server's tasks to all ranks."""

from __future__ import annotations

import time
from typing import Any

from mpi4py import MPI  # type: ignore[import-not-found]

from . import mpi_ranks


def everybody(task: mpi_ranks.Task) -> list[dict[str, Any]]:
    """Send a task to each other rank, carry it out here too, and collect what came of it."""
    world = MPI.COMM_WORLD
    for rank in range(1, world.size):
        world.send(task, dest=rank)
    return [mpi_ranks.work(0, task), *(_heard(world, rank) for rank in range(1, world.size))]


def _heard(world: Any, rank: int) -> dict[str, Any]:
    """Return another rank's result; MPI alone would keep a core busy while it waits for one that is cut off."""
    while not world.iprobe(source=rank):
        time.sleep(0.005)
    found: dict[str, Any] = world.recv(source=rank)
    return found


if __name__ == "__main__":
    mpi_ranks.lead(everybody)
