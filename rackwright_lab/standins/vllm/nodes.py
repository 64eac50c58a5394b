"""One engine over several nodes: the ranks meet at `--master-addr`, and the first one serves.

As seen of the real server: a head whose other rank has died answers /health with 200 until a request has failed, and
503 from then on; the other ranks serve nothing, and outlive their head.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from typing import Any, NoReturn

from ..engine import log

MEETING = 600.0
"""Seconds for which a rank waits for the others."""
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
        self.told = False
        """Whether a request has failed of that: only then /health says so."""

    def meet(self, options: dict[str, Any]) -> None:
        """Wait until every other rank is there with the same options. Raises RuntimeError when one is not."""
        nodes = options["nnodes"] or 1
        if nodes == 1:
            return
        place = (options["master_addr"] or "127.0.0.1", options["master_port"] or 29501)
        waiting = socket.create_server(place, backlog=nodes)
        waiting.settimeout(MEETING)
        log.line(f"world_size={nodes} rank=0 distributed_init_method=tcp://{place[0]}:{place[1]} backend=gloo")
        seen: set[int] = set()
        while len(seen) < nodes - 1:
            try:
                met, _ = waiting.accept()
            except TimeoutError:
                raise RuntimeError(
                    f"Timed out after {MEETING:g} s waiting for {nodes - 1 - len(seen)} nodes."
                ) from None
            seen.add(self._welcome(met, options))

    def _welcome(self, met: socket.socket, options: dict[str, Any]) -> int:
        file = met.makefile("rw")
        theirs = json.loads(file.readline())
        if theirs["options"] != told(options):
            raise RuntimeError(f"The nodes disagree: {theirs['options']} and {told(options)}.")
        file.write("joined\n")
        file.flush()
        threading.Thread(target=self._watch, args=(met, theirs["rank"]), daemon=True).start()
        return int(theirs["rank"])

    def _watch(self, met: socket.socket, rank: int) -> None:
        try:
            while met.recv(64):
                pass
        except OSError:
            pass
        log.line(f"Worker proc of node {rank} died unexpectedly.", "E")
        self.lost = True


def told(options: dict[str, Any]) -> dict[str, Any]:
    """The options that nodes compare."""
    return {key: options[key] for key in SAME}


def run_headless(options: dict[str, Any]) -> NoReturn:
    """Join the head and work for it until a signal comes: nothing here notices that the head has gone."""
    head = (options["master_addr"], options["master_port"] or 29501)
    log.line(f"Launching vLLM headless multiproc executor, with head node address {head[0]}:{head[1]}")
    met = _called(head)
    file = met.makefile("rw")
    file.write(json.dumps({"rank": options["node_rank"], "options": told(options)}) + "\n")
    file.flush()
    if file.readline() != "joined\n":
        log.line("The head did not take this node.", "E")
        os._exit(1)
    log.line(f"node {options['node_rank']} has joined")
    while True:
        time.sleep(3600)


def _called(head: tuple[str, int]) -> socket.socket:
    end = time.monotonic() + MEETING
    while True:
        try:
            return socket.create_connection(head, timeout=10)
        except OSError as error:
            if time.monotonic() > end:
                raise RuntimeError(
                    f"The client socket has timed out while trying to connect to {head}: {error}"
                ) from error
            time.sleep(0.5)
