"""An endpoint of several hosts: what its engine, its version and its sizes must be for that."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.settings.group import rank_ports
from rackwright.settings.host_settings import EndpointSettings
from rackwright_engines.finding import Finding, Level
from rackwright_engines.fit.sizes import EngineOptions
from rackwright_engines.key_path import KeyPath
from rackwright_engines.options.commandline import spelled
from rackwright_engines.options.schema import line_for, next_line
from rackwright_engines.version import bare

CODE = "RW0330"
OURS = {
    "vllm": {"nnodes", "node-rank", "master-addr", "master-port", "headless", "distributed-executor-backend"},
    "sglang": {"nnodes", "node-rank", "dist-init-addr"},
}
"""Options that follow from `hosts`, by engine: the unit gives them to each member."""
LAUNCHED = "tensorrt-llm"
"""The engine whose ranks mpirun starts on all hosts; it has no options for that."""
SIZES = {
    "--tp_size": "tensor_parallel_size",
    "--tensor_parallel_size": "tensor_parallel_size",
    "--pp_size": "pipeline_parallel_size",
    "--pipeline_parallel_size": "pipeline_parallel_size",
    "--cp_size": "context_parallel_size",
    "--context_parallel_size": "context_parallel_size",
}
"""Words of its command line that say how many ranks there are, and where they are said over several hosts."""
HIGHEST = 65535
"""The last port that there is."""
DISAGGREGATED = frozenset({"kv-transfer-config", "disaggregation-mode"})
"""Options by which some hosts read prompts and others answer."""
FIRST = {"vllm": "0.11.1", "sglang": "0.5.2"}
"""The first version of each that has `--nnodes`, as far as the data go."""
DATA_PARALLEL = ("dp", "dp_local", "dp_rank")


def check_group(endpoint: EndpointSettings, plan: EngineOptions) -> Iterator[Finding]:
    """Yield what keeps several hosts from serving this endpoint together; nothing for an endpoint of one host."""
    if endpoint.size == 1:
        return
    if endpoint.engine_kind == LAUNCHED:
        yield from _launched(endpoint)
    elif not _knows_nodes(endpoint):
        text = f"{endpoint.engine_kind} {endpoint.version} has no --nnodes: take {FIRST[endpoint.engine_kind]} or newer"
        yield Finding(("hosts",), text, code=CODE)
    yield from _surroundings(endpoint)
    yield from _sizes(endpoint, plan)
    yield from _options(endpoint)


def _launched(endpoint: EndpointSettings) -> Iterator[Finding]:
    """Check what mpirun wants: it starts as many ranks as the engine's options say, as root in the container."""
    for at, argument in enumerate(endpoint.arguments):
        option = argument.split("=")[0]
        if option in SIZES:
            text = f"{option}: over several hosts write it as engine.{SIZES[option]}, from which the ranks follow"
            yield Finding(("arguments", at), text, code=CODE)
    first, last = rank_ports(endpoint.group_port)
    if first <= endpoint.port <= last:
        text = f"{endpoint.group_port} to {last} are the members' own, and port is {endpoint.port}: move one"
        yield Finding(("group_port",), text, code=CODE)
    if last > HIGHEST:
        text = f"{endpoint.group_port} to {last} are the members' own, and ports end at {HIGHEST}: lower it"
        yield Finding(("group_port",), text, code=CODE)
    if endpoint.container.user:
        text = "over several hosts mpirun starts the ranks as root of the container: leave it out"
        yield Finding(("container", "user"), text, code=CODE)


def _knows_nodes(endpoint: EndpointSettings) -> bool:
    """Return whether the version may take hosts: one between two lines may have what the next one has."""
    schema, exact = line_for(endpoint.engine_kind, bare(endpoint.version))
    lines = [schema] if exact else [schema, next_line(schema)]
    return any(("nnodes",) in one.all_keys() for one in lines if one)


def _surroundings(endpoint: EndpointSettings) -> Iterator[Finding]:
    if endpoint.network != "host":
        text = "bridge keeps the members of a group from each other: write host"
        yield Finding(("network",), text, code=CODE)
    if endpoint.container.shm_size:
        text = "the ranks of a host share its own /dev/shm (--ipc=host): leave it out"
        yield Finding(("container", "shm_size"), text, code=CODE)
    if endpoint.replicas > 1:
        text = f"{endpoint.replicas} endpoints of one GPU each, and hosts is {endpoint.size}: leave one of them out"
        yield Finding(("replicas",), text, code=CODE)
    if endpoint.port in (endpoint.group_port, endpoint.group_port + 1):
        text = f"{endpoint.group_port} and the next one are the members' own, and port is {endpoint.port}: move one"
        yield Finding(("group_port",), text, code=CODE)


def _sizes(endpoint: EndpointSettings, plan: EngineOptions) -> Iterator[Finding]:
    given = next((name for name in DATA_PARALLEL if plan.value(name) not in (None, 1)), None)
    if given:
        text = "data parallel over several hosts is not supported yet: write 1, and let other hosts serve replicas"
        yield Finding(plan.path(given), text, code=CODE)
    ranks = plan.number("tp") * plan.number("pp") * plan.number("cp")
    if ranks % endpoint.size:
        text = f"{ranks} GPUs do not go evenly onto {endpoint.size} hosts: write a multiple of {endpoint.size}"
        yield Finding(plan.path("tp"), text, code=CODE)
    elif plan.number("tp") > ranks // endpoint.size and endpoint.group_transport == "any":
        text = (
            f"tensor parallel crosses its hosts, twice a layer for each token: over Ethernet write "
            f"{plan.path('pp')[-1]}: {endpoint.size} and the tensor parallel size of one host; "
            "over RDMA or NVLink write group_transport: rdma or nvlink, and it is checked"
        )
        yield Finding(plan.path("tp"), text, Level.WARN, code=CODE)


def _options(endpoint: EndpointSettings) -> Iterator[Finding]:
    schema = line_for(endpoint.engine_kind, bare(endpoint.version))[0]
    words: list[tuple[KeyPath, str]] = [(("engine", name), name) for name in endpoint.engine]
    words += [(("arguments", at), argument.split("=")[0]) for at, argument in enumerate(endpoint.arguments)]
    for path, argument in words:
        if path[0] == "arguments" and not argument.startswith("-"):
            continue
        meant = spelled(schema, str(argument))
        if meant is not None and meant.key.name in OURS.get(endpoint.engine_kind, ()):
            yield Finding(path, f"follows from hosts: {endpoint.size}: leave it out", code=CODE)
        elif meant is not None and meant.key.name in DISAGGREGATED:
            yield Finding(path, "disaggregated serving over several hosts is not supported yet", code=CODE)
