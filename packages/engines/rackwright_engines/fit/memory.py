"""GPU memory for model, draft and KV cache: an estimate that says how it was made and never refuses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from rackwright_engines.data import table
from rackwright_engines.finding import Finding, Level
from rackwright_engines.fit.gpu import GpuType, gpu_types
from rackwright_engines.fit.sizes import EngineOptions
from rackwright_engines.serving import GpuHost, Serving

GIB = 1024**3
FIGURES = {"weights": "whether its weights fit", "kv_bytes": "how many tokens the KV cache holds"}
"""The figures of a model that are computed."""


def check_memory(endpoint: Serving, plan: EngineOptions, hardware: GpuHost) -> list[Finding]:
    """Warnings when the weights, or one request of full length, would not fit on the smallest GPU that is allowed."""
    model = next(
        (row for row in table("models") if endpoint.model and row["repository"] == endpoint.model.repository), None
    )
    gpus = gpu_types(hardware)
    weights = weights_of(endpoint)
    if not gpus or weights is None:
        return list(_not_computed(endpoint, model))
    fits = _fits(plan, model, weights, min(gpus, key=lambda gpu: gpu.memory_mib))
    return [*fits, *_not_computed(endpoint, model)]


def _not_computed(endpoint: Serving, model: dict[str, Any] | None) -> Iterator[Finding]:
    """Say which part of the estimate is missing for a model: its weights, or what a token of context takes."""
    repository = endpoint.model.repository if endpoint.model else ""
    absent = [key for key in FIGURES if not (model or {}).get(key)]
    if repository and absent:
        # Without the weights nothing says what they leave for the cache.
        missing = list(FIGURES.values()) if "weights" in absent else [FIGURES[key] for key in absent]
        why = "the size of its weights was not read" if absent == ["weights"] else "no configuration of it was read"
        text = f"not computed for {repository}: {' and '.join(missing)}, since {why}"
        yield Finding(("model", "repository"), text, Level.NOTE, code="RW0333")


def weights_of(endpoint: Serving) -> int | None:
    """Return the bytes of the model and its draft together; None when the model's size is not known."""
    sizes = _sizes()
    if endpoint.model is None or endpoint.model.repository not in sizes:
        return None
    return sizes[endpoint.model.repository] + sizes.get(endpoint.draft.repository if endpoint.draft else "", 0)


@cache
def _sizes() -> dict[str, int]:
    return {row["repository"]: int(row["weights"]) for row in table("models") if "weights" in row}


def _fits(plan: EngineOptions, model: dict[str, Any] | None, weights: int, gpu: GpuType) -> Iterator[Finding]:
    gpus = plan.gpus * plan.number("nodes")
    share, memory = weights / gpus, gpu.memory_mib * 1024**2
    sum_ = f"{gib(weights)} of weights over {gpus} GPU{'s' if gpus > 1 else ''} with {gib(memory)} each"
    if share > memory:
        yield Finding(plan.path("tp"), f"the weights do not seem to fit: {sum_}", Level.WARN, code="RW0313")
        return
    room, token = _room(plan, memory, share), _token(plan, model)
    sequence = plan.number("sequence", int((model or {}).get("context", 0)) or 1)
    if token and room < sequence * token:
        text = (
            f"one request of {sequence} tokens does not seem to fit: {sum_} leave about {gib(room)} for the KV cache,"
            f" which holds {int(room / token)} tokens at {int(token)} bytes each"
        )
        yield Finding(plan.path("sequence"), text, Level.WARN, code="RW0313")


def _room(plan: EngineOptions, memory: float, share: float) -> float:
    """Bytes a GPU has for the KV cache: TensorRT-LLM's fraction is of what the weights leave, the others' of all."""
    fraction = plan.effective("fraction")
    part = float(fraction) if isinstance(fraction, int | float) else 0.9
    return part * (memory - share) if plan.engine_kind == "tensorrt-llm" else max(part * memory - share, 0)


def _token(plan: EngineOptions, model: dict[str, Any] | None) -> float:
    """Return the bytes of KV cache a token takes on one GPU; 0 when it is not known."""
    if model is None or "kv_bytes" not in model:
        return 0
    narrow = 0.5 if "fp8" in str(plan.effective("kv_dtype")) else 1.0
    return float(model["kv_bytes"]) * (1 - float(model["windowed"])) * narrow / plan.gpus


def gib(size: float) -> str:
    """Return a size for people."""
    return f"{size / GIB:.0f} GiB"
