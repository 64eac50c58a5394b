"""Engine arguments for the other hosts: the engine's own flags, or mpirun, which the head's container runs. Pure.

The arguments are the same on every host; systemd puts each one's rank and addresses in, from its binding.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rackwright.engines.launch import is_launched, launch_ports
from rackwright.paths import RELEASE_MOUNT
from rackwright.plan.render import Expanded
from rackwright.settings.host_settings import EndpointSettings

HEADLESS = {"vllm": "--headless", "sglang": "--host=127.0.0.1"}
"""The word by which a member that is not the head answers no client.

SGLang's other members answer /health with 200 once they have loaded, and nothing else (srt/utils/common.py,
launch_dummy_health_check_server): a balancer would take them for endpoints, so they answer their own host alone.
"""
HOST_ADDRESS = {"vllm": "VLLM_HOST_IP", "sglang": "SGLANG_HOST_IP"}
"""The variable by which an engine knows its own host's address towards the others."""

FIRST_PROCESS = "first-process"
"""The program with which a member's container begins, where mpirun starts the engine's ranks."""
RANKS = ("tensor_parallel_size", "pipeline_parallel_size", "context_parallel_size")
"""Options of TensorRT-LLM whose product is the number of its ranks, one a GPU."""
NETWORKS = ("UCX_NET_DEVICES", "OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include")
"""Variables by which what mpirun starts stays on the members' own network."""

CARRIERS = {
    "any": (),
    "rdma": ("--device", "/dev/infiniband", "--cap-add", "IPC_LOCK"),
    "nvlink": ("--env", "NVIDIA_IMEX_CHANNELS=0"),
}
"""Further needs of a container, by what carries the traffic: RDMA's devices and locked memory, or an IMEX channel."""


def launch_words(endpoint: EndpointSettings) -> list[str]:
    """Return the arguments in front of the server's own where mpirun starts it; otherwise nothing."""
    ports = launch_ports(endpoint)
    if ports is None:
        return []
    ranks = math.prod(int(endpoint.engine.get(name) or 1) for name in RANKS)
    arguments = [Expanded("${RANK}"), Expanded("${MEMBERS}"), str(ranks // endpoint.size), *map(str, ports)]
    return ["/bin/bash", f"{RELEASE_MOUNT}/{FIRST_PROCESS}", *arguments]


def member_words(endpoint: EndpointSettings) -> list[str]:
    """Return the arguments of any member of a group; none for one host, or where mpirun sets the ranks."""
    if endpoint.size == 1 or is_launched(endpoint):
        return []
    return [*_words(endpoint, Expanded("${RANK}"), "${HEAD}"), Expanded("$HEADLESS")]


def first_member_words(endpoint: EndpointSettings) -> list[str]:
    """Return the same for the head alone: for asking an image about its options."""
    meets = endpoint.size > 1 and not is_launched(endpoint)
    return _words(endpoint, "0", "127.0.0.1") if meets else []


def _words(endpoint: EndpointSettings, rank: str, head: str) -> list[str]:
    nodes = ["--nnodes", str(endpoint.size), "--node-rank", rank]
    return [*nodes, *MEETING[endpoint.engine_kind](head, str(endpoint.group_port))]


def _vllm(head: str, port: str) -> list[str]:
    return ["--master-addr", Expanded(head), "--master-port", port, "--distributed-executor-backend", "mp"]


def _sglang(head: str, port: str) -> list[str]:
    return ["--dist-init-addr", Expanded(f"{head}:{port}")]


MEETING: dict[str, Callable[[str, str], list[str]]] = {"vllm": _vllm, "sglang": _sglang}


def member_place(endpoint: EndpointSettings) -> list[str]:
    """Words of `docker run` by which everything between the members goes over their own addresses, by what was asked.

    A name without a value is taken from what `docker run` itself was started with: the interface, found at each start.
    """
    if endpoint.size == 1:
        return []
    names = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", *(NETWORKS if is_launched(endpoint) else ()))
    named = [argument for name in names for argument in ("--env", name)]
    variable = HOST_ADDRESS.get(endpoint.engine_kind)
    address = ["--env", Expanded(f"{variable}=${{ADDRESS}}")] if variable else []
    return [*address, *named, *CARRIERS[endpoint.group_transport]]
