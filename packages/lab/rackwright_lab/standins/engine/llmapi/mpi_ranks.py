"""The ranks that mpirun has started on all hosts, as the server of the first one sees them: by a leader beside it.

The server asks the leader over a socket of this host alone, with a key; the leader asks all ranks over MPI itself, so
that nothing works here unless real ranks on all hosts reach each other.
"""

from __future__ import annotations

import os
import socket
import time
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

from .. import gpus, log
from ..checkpoint import open_checkpoint, resolve

Task = dict[str, Any]


def are_there() -> bool:
    """Tell whether this server was started by trtllm-llmapi-launch."""
    return os.environ.get("TLLM_SPAWN_PROXY_PROCESS") == "1"


def _address() -> tuple[str, int]:
    host, _, port = os.environ["TLLM_SPAWN_PROXY_PROCESS_IPC_ADDR"].removeprefix("tcp://").rpartition(":")
    return host, int(port)


def _key() -> bytes:
    return bytes.fromhex(os.environ["TLLM_SPAWN_PROXY_PROCESS_IPC_HMAC_KEY"])


def ask(task: Task) -> list[dict[str, Any]]:
    """Let all ranks carry out a task; return what each has found. Raises RuntimeError when the leader is not there."""
    for _ in range(300):
        try:
            with Client(_address(), authkey=_key()) as connection:
                connection.send(task)
                return list(connection.recv())
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise RuntimeError("RemoteMpiCommSessionClient: the MPI Comm Server does not answer")


def take_part() -> None:
    """Wait until every rank has done its part of an answer, as each token does; for good when one is cut off."""
    ask({})


def check(world: int, model: str) -> None:
    """Refuse what the ranks cannot serve: too few or too many of them, no GPU or no model for one."""
    found = ask({"model": model})
    if len(found) != world:
        raise ValueError(f"External MPI session has {len(found)} workers but the model needs world_size={world}.")
    for one in found:
        log.emit(f"rank {one['rank']} is on {one['host']}, GPU {one['local']} of {one['gpus']}")
        if one["error"]:
            raise RuntimeError(f"rank {one['rank']} on {one['host']}: {one['error']}")
        if one["local"] >= one["gpus"]:
            raise RuntimeError(f"CUDA error: invalid device ordinal (rank {one['rank']} on {one['host']})")


def work(rank: int, task: Task) -> dict[str, Any]:
    """Carry out a task on one rank; without a model to look at, to have heard of it is all."""
    host = socket.gethostname()
    if "model" not in task:
        return {"rank": rank, "host": host}
    if os.environ.get("NCCL_DEBUG") == "INFO":
        named = os.environ.get("NCCL_SOCKET_IFNAME", "")
        print(f"{host}:{os.getpid()}:1 [0] NCCL INFO NET/Socket : Using [0]{named}", flush=True)
        print(f"{host}:{os.getpid()}:1 [0] NCCL INFO Using network Socket", flush=True)
    error = ""
    try:
        open_checkpoint(resolve(str(task["model"])))
    except (OSError, ValueError) as problem:
        error = str(problem)
    local = int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])
    return {"rank": rank, "host": host, "local": local, "gpus": gpus.count(), "error": error}


def lead(everybody: Any) -> None:
    """Serve the server's tasks for good. everybody: carries a task out on all ranks, and returns what came of it."""
    with Listener(_address(), authkey=_key()) as listener:
        while True:
            with listener.accept() as connection:
                _serve(connection, everybody)


def _serve(connection: Connection, everybody: Any) -> None:
    try:
        connection.send(everybody(connection.recv()))
    except EOFError:
        log.emit("the server has closed the connection", "W")
