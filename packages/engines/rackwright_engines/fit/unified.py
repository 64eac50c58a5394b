"""Checks the engine's share of memory where GPU and host have one memory (GB10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from rackwright_engines.finding import Finding, Level
from rackwright_engines.fit.gpu import gpu_types
from rackwright_engines.fit.memory import GIB, gib, weights_of
from rackwright_engines.fit.sizes import EngineOptions
from rackwright_engines.key_path import KeyPath
from rackwright_engines.options.commandline import number
from rackwright_engines.serving import GpuHost, Serving

CODE = "RW0354"
SYSTEM = 8 * GIB
"""Memory that system, dockerd and the server's processes need."""
SPARE = 4 * GIB
"""Memory to keep free where the fraction is one of free memory (TensorRT-LLM)."""
OFFLOADED: dict[str, dict[KeyPath, int]] = {
    "vllm": {("cpu-offload-gb",): GIB, ("swap-space",): GIB, ("kv-offloading-size",): GIB},
    "sglang": {("cpu-offload-gb",): GIB, ("hicache-size",): 10**9},
    "tensorrt-llm": {("kv_cache_config", "host_cache_size"): 1},
}
"""Options that take the host's memory as well, with the bytes of their unit."""


def check_unified(endpoint: Serving, plan: EngineOptions, hardware: GpuHost) -> Iterator[Finding]:
    """Warn of a fraction of the memory that leaves the system too little of it."""
    memory = shared_memory(hardware)
    if not memory:
        return
    engine, spare = engine_memory(endpoint, plan, memory), SPARE if _is_trtllm(plan) else SYSTEM
    if engine + spare > memory:
        text = (
            f"{plan.effective('fraction')} of {gib(memory)} that GPU and host share leaves {gib(memory - engine)} to "
            f"the system, page cache and all: write {_most(plan.engine_kind, memory)} at most"
        )
        yield Finding(plan.path("fraction"), text, Level.WARN, code=CODE)
    cache = _number(plan.options.get("kv-cache-memory-bytes")) if plan.engine_kind == "vllm" else 0
    if cache + spare > memory:
        text = f"is {gib(cache)} of the {gib(memory)} that GPU and host share: write less, or leave it out"
        yield Finding(("engine", "kv-cache-memory-bytes"), text, Level.WARN, code=CODE)
    for path, size in _offloaded(plan):
        if engine + size + spare > memory:
            text = (
                f"is {gib(size)} of the {gib(memory)} that GPU and host share beside {gib(engine)} of the engine: "
                "leave it out, nothing is gained by it here"
            )
            yield Finding(("engine", *path), text, Level.WARN, code=CODE)


def shared_memory(hardware: GpuHost) -> int:
    """Return the bytes that GPU and host share; 0 where each has its own."""
    return min((gpu.memory_mib * 1024**2 for gpu in gpu_types(hardware) if gpu.unified), default=0)


def _offloaded(plan: EngineOptions) -> Iterator[tuple[KeyPath, float]]:
    for path, unit in OFFLOADED[plan.engine_kind].items():
        here: object = plan.options
        for part in path:
            here = here.get(part) if isinstance(here, Mapping) else None
        if (amount := _number(here)) > 0:
            yield path, amount * unit


def _number(value: object) -> float:
    """Return a number, also of a word of the command line as 0.9 or 40G; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0
    with suppress(ValueError):
        return float(value)
    return number(value) or 0


def engine_memory(endpoint: Serving, plan: EngineOptions, memory: int) -> float:
    """Return the bytes of an engine: TensorRT-LLM's fraction is of what the weights leave, the others' of all."""
    part = _number(plan.effective("fraction")) or 0.9
    weights = (weights_of(endpoint) or 0) / (plan.gpus * plan.number("nodes")) if _is_trtllm(plan) else 0
    return weights + part * max(memory - weights, 0)


def _is_trtllm(plan: EngineOptions) -> bool:
    return plan.engine_kind == "tensorrt-llm"


def _most(engine_kind: str, memory: int) -> str:
    return "0.9" if engine_kind == "tensorrt-llm" else f"{int((memory - SYSTEM) / memory * 100) / 100}"
