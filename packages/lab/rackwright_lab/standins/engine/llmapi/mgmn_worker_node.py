"""`python3 -m tensorrt_llm.llmapi.mgmn_worker_node`: any other rank, which carries tasks out until mpirun ends it."""

from __future__ import annotations

import time

from mpi4py import MPI  # type: ignore[import-not-found]

from . import mpi_ranks


def main() -> None:
    """Wait for tasks without spinning, as the real pool does."""
    world = MPI.COMM_WORLD
    while True:
        while not world.iprobe(source=0):
            time.sleep(0.02)
        world.send(mpi_ranks.work(world.rank, world.recv(source=0)), dest=0)


if __name__ == "__main__":
    main()
