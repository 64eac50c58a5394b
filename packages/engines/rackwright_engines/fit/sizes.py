"""The few numbers of an endpoint that must fit together, under one name for all engines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rackwright_engines.key_path import KeyPath
from rackwright_engines.options.commandline import by_key, number, parsed
from rackwright_engines.options.schema import NO_DEFAULT, line_for
from rackwright_engines.serving import Serving
from rackwright_engines.version import bare

NAMES: dict[str, dict[str, KeyPath]] = {
    "tensorrt-llm": {
        "tp": ("tensor_parallel_size",),
        "pp": ("pipeline_parallel_size",),
        "cp": ("context_parallel_size",),
        "ep": ("moe_expert_parallel_size",),
        "nodes": ("nnodes",),
        "moe_tp": ("moe_tensor_parallel_size",),
        "sequence": ("max_seq_len",),
        "batch": ("max_batch_size",),
        "drafting": ("speculative_config",),
        "length": ("speculative_config", "max_draft_len"),
        "layers": ("speculative_config", "eagle3_layers_to_capture"),
        "fraction": ("kv_cache_config", "free_gpu_memory_fraction"),
        "kv_dtype": ("kv_cache_config", "dtype"),
        "moe": ("moe_config", "backend"),
    },
    "vllm": {
        "tp": ("tensor-parallel-size",),
        "pp": ("pipeline-parallel-size",),
        "cp": ("prefill-context-parallel-size",),
        "dp": ("data-parallel-size",),
        "dp_local": ("data-parallel-size-local",),
        "dp_rank": ("data-parallel-rank",),
        "nodes": ("nnodes",),
        "sequence": ("max-model-len",),
        "batch": ("max-num-seqs",),
        "drafting": ("speculative-config",),
        "method": ("spec-method",),
        "length": ("speculative-config", "num_speculative_tokens"),
        "fraction": ("gpu-memory-utilization",),
        "kv_dtype": ("kv-cache-dtype",),
    },
    "sglang": {
        "tp": ("tensor-parallel-size",),
        "pp": ("pipeline-parallel-size",),
        "dp": ("data-parallel-size",),
        "dp_shared": ("enable-dp-attention",),
        "nodes": ("nnodes",),
        "ep": ("expert-parallel-size",),
        "sequence": ("context-length",),
        "batch": ("max-running-requests",),
        "drafting": ("speculative-algorithm",),
        "length": ("speculative-num-steps",),
        "fraction": ("mem-fraction-static",),
        "kv_dtype": ("kv-cache-dtype",),
    },
}


UNNAMED = "a draft model"
"""The method of drafting where the options leave that to the engine."""


@dataclass(frozen=True)
class EngineOptions:
    """The engine's options of one endpoint, by the names above."""

    engine_kind: str
    version: str
    options: Mapping[str, Any]
    """By the engine's own keys, whatever names the user gave them."""

    def path(self, name: str) -> KeyPath:
        """Return the path of the value in the endpoint's settings; `engine` alone for what the engine does not have."""
        return ("engine", *NAMES[self.engine_kind].get(name, ()))

    def has(self, name: str) -> bool:
        """Return True if the engine has such an option at all."""
        return name in NAMES[self.engine_kind]

    def value(self, name: str) -> Any:
        """Return the configured value; None without one."""
        here: Any = self.options
        for part in NAMES[self.engine_kind].get(name, ("",)):
            here = parsed(here)
            here = here.get(part) if isinstance(here, Mapping) else None
        return here

    def effective(self, name: str) -> Any:
        """Return the configured value, or else the version's default; None when that is unknown."""
        if self.value(name) is not None or not self.has(name):
            return self.value(name)
        keys = line_for(self.engine_kind, bare(self.version))[0].all_keys()
        key = keys.get(tuple(map(str, NAMES[self.engine_kind][name])))
        return None if key is None or key.default is NO_DEFAULT else key.default

    def number(self, name: str, otherwise: int = 1) -> int:
        """Return a whole number of at least 1; `otherwise` for anything else, which was reported before."""
        found = number(self.effective(name))
        return found if found is not None and found >= 1 else otherwise

    @property
    def drafting(self) -> str | None:
        """Return the engine's own word for how tokens are drafted; None when they are not."""
        section = self.value("drafting")
        section = section if self.engine_kind == "sglang" else parsed(section)
        if isinstance(section, Mapping) and section:
            return str(section.get("method") or section.get("decoding_type") or UNNAMED)
        return str(section or self.value("method") or "") or None

    @property
    def sizes(self) -> dict[str, int]:
        """Return the factors of this host's number of GPUs by name: tensor, pipeline, context, data parallel."""
        return {name: self.number(name) for name in ("tp", "pp", "cp")} | {"dp": self._replicas}

    @property
    def _replicas(self) -> int:
        """Groups that are data parallel to each other on this host; those that share their GPUs count as one."""
        if self.value("dp_shared") or self.value("dp_rank") is not None:
            return 1
        return self.number("dp_local", self.number("dp"))

    @property
    def gpus(self) -> int:
        """GPUs that the server uses on one host."""
        here = math.prod(self.sizes.values())
        whole = self.value("dp_local") is not None or self.value("dp_rank") is not None
        return here if whole else math.ceil(here / self.number("nodes"))


def plan_of(endpoint: Serving) -> EngineOptions:
    """Return the plan of an endpoint."""
    ours = {"nnodes": endpoint.size} if endpoint.size > 1 else {}
    if endpoint.engine_kind == "tensorrt-llm":
        return EngineOptions(endpoint.engine_kind, endpoint.version, {**endpoint.engine, **ours})
    schema = line_for(endpoint.engine_kind, bare(endpoint.version))[0]
    options = by_key(schema, endpoint.engine, endpoint.arguments)
    return EngineOptions(endpoint.engine_kind, endpoint.version, {**options, **ours})
