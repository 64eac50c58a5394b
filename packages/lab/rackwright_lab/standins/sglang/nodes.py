"""One engine over several nodes: the ranks meet at `--dist-init-addr`, and the first one serves.

By the source of 0.5.8: ranks meet before they load (`init_torch_distributed`, model_executor/model_runner.py:730). Once
its schedulers are ready, a node of another rank answers health checks with 200, and nothing else
(`_launch_subprocesses`, entrypoints/engine.py:969). The schedulers of all ranks exchange requests at each turn, idle or
not, so that any of them ends when another one is gone, and its server with it.
"""

from __future__ import annotations

import os
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..common import meeting
from ..engine import log

SAME = ("model_path", "tp_size", "pp_size", "nnodes", "context_length")
"""Options that must be equal on every node."""


def check(options: dict[str, Any]) -> None:
    """Refuse what several nodes cannot be started with (`check_server_args`, server_args.py:4807)."""
    assert (options["tp_size"] * options["pp_size"]) % options["nnodes"] == 0, (
        "tp_size must be divisible by number of nodes"
    )


def rank_of(options: dict[str, Any]) -> int:
    """Return the node's rank; 0 serves."""
    return int(options["node_rank"] or 0)


def meet(options: dict[str, Any]) -> None:
    """Wait until all ranks are there with the same options. Raises RuntimeError when one is not."""
    if options["nnodes"] == 1:
        return
    host, _, port = (options["dist_init_addr"] or f"127.0.0.1:{options['port'] + 233}").rpartition(":")
    log.emit(f"Init torch distributed begin. tcp://{host}:{port}")
    same = {key: options[key] for key in SAME}
    if rank_of(options) == 0:
        meeting.gather((host, int(port)), options["nnodes"], same, _die)
        return
    connection = meeting.join((host, int(port)), rank_of(options), same)
    if connection is None:
        _die(0)
    else:
        meeting.watch(connection, lambda: _die(0))


def _die(rank: int) -> None:
    log.emit(f"Scheduler hit an exception: RuntimeError: Connection closed by peer (node {rank})", "E")
    log.emit("Received sigquit from a child process. It usually means the child failed.", "E")
    os._exit(1)


def health_alone() -> Starlette:
    """Return the web application of another rank: `launch_dummy_health_check_server` (srt/utils/common.py:2541)."""

    async def well(_: Request) -> Response:
        return Response(status_code=200)

    return Starlette(routes=[Route(path, well) for path in ("/ping", "/health", "/health_generate")])
