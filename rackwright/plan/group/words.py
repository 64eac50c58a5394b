"""How vLLM is told of the other hosts: by its own flags, without Ray and without SSH. Pure.

The words are the same on every host; systemd puts each one's rank and addresses in, from its binding.
"""

from __future__ import annotations

from rackwright.plan.render import Expanded
from rackwright.settings.model import EndpointSettings


def member_words(endpoint: EndpointSettings) -> list[str]:
    """The words for any member of a group; none for an endpoint of one host."""
    if endpoint.size == 1:
        return []
    return _words(endpoint, Expanded("${RANK}"), Expanded("${HEAD}"), Expanded("$HEADLESS"))


def first_member_words(endpoint: EndpointSettings) -> list[str]:
    """The same for the head, by itself: for asking an image about its options."""
    return _words(endpoint, "0", "127.0.0.1") if endpoint.size > 1 else []


def _words(endpoint: EndpointSettings, rank: str, head: str, *more: str) -> list[str]:
    nodes = ["--nnodes", str(endpoint.size), "--node-rank", rank]
    meeting = ["--master-addr", head, "--master-port", str(endpoint.group_port)]
    return [*nodes, *meeting, "--distributed-executor-backend", "mp", *more]


def member_environment() -> list[str]:
    """Words of `docker run` by which everything between the members goes over their own addresses.

    A name without a value is taken from what `docker run` itself was started with: the interface, found at each start.
    """
    named = [word for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME") for word in ("--env", name)]
    return ["--env", Expanded("VLLM_HOST_IP=${ADDRESS}"), *named]
