"""How each engine learns of the other hosts: by its own flags, without Ray and without SSH. Pure.

The words are the same on every host; systemd puts each one's rank and addresses in, from its binding.
"""

from __future__ import annotations

from collections.abc import Callable

from rackwright.plan.render import Expanded
from rackwright.settings.model import EndpointSettings

HEADLESS = {"vllm": "--headless", "sglang": "--host=127.0.0.1"}
"""The word by which a member that is not the head answers no client.

SGLang's other members answer /health with 200 once they have loaded, and nothing else (srt/utils/common.py,
launch_dummy_health_check_server): a balancer would take them for endpoints, so they answer their own host alone.
"""
HOST_ADDRESS = {"vllm": "VLLM_HOST_IP", "sglang": "SGLANG_HOST_IP"}
"""The variable by which an engine knows its own host's address towards the others."""

CARRIERS = {
    "any": (),
    "rdma": ("--device", "/dev/infiniband", "--cap-add", "IPC_LOCK"),
    "nvlink": ("--env", "NVIDIA_IMEX_CHANNELS=0"),
}
"""What a container needs besides, by what carries the traffic: RDMA's devices and locked memory, or an IMEX channel."""


def member_words(endpoint: EndpointSettings) -> list[str]:
    """The words for any member of a group; none for an endpoint of one host."""
    if endpoint.size == 1:
        return []
    return [*_words(endpoint, Expanded("${RANK}"), "${HEAD}"), Expanded("$HEADLESS")]


def first_member_words(endpoint: EndpointSettings) -> list[str]:
    """The same for the head, by itself: for asking an image about its options."""
    return _words(endpoint, "0", "127.0.0.1") if endpoint.size > 1 else []


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
    named = [word for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME") for word in ("--env", name)]
    address = Expanded(f"{HOST_ADDRESS[endpoint.engine_kind]}=${{ADDRESS}}")
    return ["--env", address, *named, *CARRIERS[endpoint.group_transport]]
