"""`python3 -m tensorrt_llm.llmapi.mgmn_leader_node`: the first rank, which hands the server's tasks to all ranks."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI  # type: ignore[import-not-found]

from . import mpi_ranks


def everybody(task: mpi_ranks.Task) -> list[dict[str, Any]]:
    """Send a task to each other rank, carry it out here too, and collect what came of it."""
    world = MPI.COMM_WORLD
    for rank in range(1, world.size):
        world.send(task, dest=rank)
    return [mpi_ranks.work(0, task), *(world.recv(source=rank) for rank in range(1, world.size))]


if __name__ == "__main__":
    mpi_ranks.lead(everybody)
