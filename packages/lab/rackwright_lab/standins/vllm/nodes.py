"""One engine over several nodes: the ranks meet at `--master-addr`, and the first one serves.

As seen of the real server: a head whose other rank has died answers /health with 200 until a request has failed, and
503 from then on; the other ranks serve nothing, and outlive their head. Each token passes every rank, so a head whose
connection to another rank is cut answers /health, and nothing else.
"""

from __future__ import annotations

import os
import time
from typing import Any, NoReturn

from ..common import meeting
from ..engine import log

SAME = ("model", "tensor_parallel_size", "pipeline_parallel_size", "nnodes", "max_model_len")
"""Options that must be equal on every node."""


def check(options: dict[str, Any], headless: bool) -> None:
    """Refuse what several nodes cannot be started with, as the real server's ParallelConfig does. Raises ValueError."""
    nodes, rank, backend = options["nnodes"] or 1, options["node_rank"] or 0, options["distributed_executor_backend"]
    if not 0 <= rank < nodes:
        raise ValueError(f"node_rank={rank} is out of range for nnodes={nodes}.")
    if nodes == 1:
        return
    if backend not in ("mp", "external_launcher"):
        raise ValueError(
            "nnodes > 1 can only be set when distributed executor backend is mp, uni or external_launcher."
        )
    if (options["tensor_parallel_size"] * options["pipeline_parallel_size"]) % nodes:
        raise ValueError("world_size must be divisible by nnodes.")
    if (rank > 0) is not headless:
        raise ValueError("node_rank 0 serves, and the other nodes are started with --headless.")


class Nodes:
    """The head's view of the other ranks."""

    def __init__(self) -> None:
        self.lost = False
        """Whether one of them has gone."""
        self.failure_reported = False
        """Whether a request has failed because of it: only then /health reports it."""
        self._peers: list[meeting.Peer] = []

    def meet(self, options: dict[str, Any]) -> None:
        """Wait until every other rank is there with the same options. Raises RuntimeError when one is not."""
        nodes = options["nnodes"] or 1
        if nodes == 1:
            return
        host, port = options["master_addr"] or "127.0.0.1", options["master_port"] or 29501
        log.emit(f"world_size={nodes} rank=0 distributed_init_method=tcp://{host}:{port} backend=gloo")
        self._peers = meeting.gather((host, port), nodes, compared_options(options), self._lose)

    def take_part(self) -> None:
        """Wait until every other rank has done its part of an answer, or is gone."""
        for peer in self._peers:
            peer.round()

    def _lose(self, rank: int) -> None:
        log.emit(f"Worker proc of node {rank} died unexpectedly.", "E")
        self.lost = True


def compared_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that nodes compare."""
    return {key: options[key] for key in SAME}


def run_headless(options: dict[str, Any]) -> NoReturn:
    """Join the head and work for it until a signal comes: nothing here notices that the head has gone."""
    head = (options["master_addr"], options["master_port"] or 29501)
    log.emit(f"Launching vLLM headless multiproc executor, with head node address {head[0]}:{head[1]}")
    connection = meeting.join(head, options["node_rank"], compared_options(options))
    if connection is None:
        log.emit("The head did not take this node.", "E")
        os._exit(1)
    log.emit(f"node {options['node_rank']} has joined")
    meeting.answer_rounds(connection)
    while True:
        time.sleep(3600)
